//! The reader against real images: good ones must give exactly what their manifests say, hostile and damaged ones must
//! be refused or give the right bytes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod badfs;
mod built;
mod cache;
mod common;
mod corruption;
mod evil;
mod hostile;
mod manifests;
mod memory;
mod options;
