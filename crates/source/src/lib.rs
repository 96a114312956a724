//! Positioned reads from files, mappings and memory
