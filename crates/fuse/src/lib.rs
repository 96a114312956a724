//! FUSE driver for DwarFS images
