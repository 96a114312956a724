//! Compression algorithms of DwarFS sections
