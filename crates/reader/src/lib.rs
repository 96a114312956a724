//! Reading DwarFS images
