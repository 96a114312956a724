//! Unpacking DwarFS images
