//! The programs mkdwarfs, dwarfs, dwarfsck, dwarfsextract and durin
