//! The pure parts of a rebase, for whoever holds them against files of any kind.

pub use crate::commits::rebase::manifest::{Entry, FileContent, Status, read as read_manifest};
pub use crate::commits::rebase::manifest_list::{
    Content, FieldSummary, Head, List, ManifestFile, Written, read as read_list, write as write_list,
};
pub use crate::commits::rebase::merge::{Delta, Merged, Numbers};
pub use crate::commits::rebase::unmerge::{Fault, Own, own_entries};
