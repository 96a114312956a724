//! Building DwarFS images
