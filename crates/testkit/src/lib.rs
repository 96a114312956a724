//! Test support: tree models, image builders, mount fixture, tree comparison
