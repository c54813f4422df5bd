//! File handles: each connection needs one, and databases, stores and files need theirs.

/// Kept for everything but the connections of clients.
const FOR_THE_REST: u64 = 512;

/// Takes as many handles as the system lets the process have, and tells how many connections that is enough for: `wanted`
/// at most, and at least one.
pub fn room_for(wanted: usize) -> usize {
    let Ok(limit) = rlimit::increase_nofile_limit(u64::MAX) else {
        return wanted;
    };
    let room = usize::try_from(limit.saturating_sub(FOR_THE_REST)).unwrap_or(usize::MAX).clamp(1, wanted.max(1));
    if room < wanted {
        tracing::warn!(limit, room, wanted, "server.connections is more than the limit of open files lets there be");
    }
    room
}
