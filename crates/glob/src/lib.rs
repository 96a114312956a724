//! The glob syntax of filters and patterns
