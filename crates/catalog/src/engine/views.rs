//! Read-only views for people, and the functions they use.
pub(super) fn functions(_connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    Ok(())
}
