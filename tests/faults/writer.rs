//! A writer that stands for stock ones: it writes real manifests and manifest lists, commits them as Iceberg's Java client
//! does, and reads a table back file by file. Data files are names only.

pub mod avro;
pub mod commit;
pub mod draft;
pub mod files;
pub mod identity;
pub mod objects;
mod summary;
pub mod table;

pub use commit::{Ended, Retry, Writer};
pub use draft::{Change, Draft, Prepared};
pub use files::DataFile;
pub use objects::{Object, Objects};
pub use table::Table;
