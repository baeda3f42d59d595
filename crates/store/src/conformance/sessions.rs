//! Sessions: what one client of a handle flushes is its own, and so are its user and its limits.

use fieldstone_core::Result;

use super::*;

fn client(number: u64) -> Session {
    Session::new(SessionId::of(number))
}

fn put_by(store: &Store, key: &str, session: &Session) -> Result<()> {
    let options = ArchiveOptions { session: session.clone(), ..ArchiveOptions::default() };
    with_key(key, |pairs| store.archive(pairs, Value::Bytes(b"x"), &options))
}

/// A flush publishes the content of its own session; another session's content waits for a flush of that session, and
/// a discard in one session leaves the other's content.
pub fn a_flush_is_of_one_session(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let (alice, bob) = (client(1), client(2));
    put_by(&store, "run=a,variable=t", &alice)?;
    put_by(&store, "run=a,variable=u", &bob)?;
    put(&store, "run=a,variable=v", b"x")?;
    assert_eq!(store.unflushed(), 3);
    store.flush(&bob)?;
    harness.settle();
    assert_eq!(listed(&store, "")?, ["{run=a}{variable=u}{}"]);
    store.discard(&alice)?;
    store.flush(&alice)?;
    flush(harness, &store)?;
    assert_eq!(listed(&store, "")?, ["{run=a}{variable=u}{}", "{run=a}{variable=v}{}"]);
    assert_eq!(store.unflushed(), 0);
    Ok(())
}

/// Two sessions of a handle in one transaction are as two processes in it: the decision shows what both have flushed, and
/// what one flushes behind it is refused.
pub fn a_transaction_has_several_sessions(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let id = store.begin()?;
    let (alice, bob) = (client(1).within(id), client(2).within(id));
    put_by(&store, "run=a,variable=t", &alice)?;
    put_by(&store, "run=a,variable=u", &bob)?;
    store.flush(&bob)?;
    store.decide(id, true, &client(1))?;
    harness.settle();
    assert_eq!(listed(&store, "")?.len(), 2, "the decision flushes its own session");
    put_by(&store, "run=a,variable=late", &bob)?;
    fails("a flush behind the decision", ErrorKind::Conflict, store.flush(&bob));
    store.discard(&bob)?;
    assert_eq!(store.unflushed(), 0);
    Ok(())
}

/// A process writes for the user who runs it: what another user's session would write is Denied, and its reads are not.
pub fn a_session_of_another_user_writes_nothing(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let stranger = client(1).of_user(987_654_321);
    fails("an archive", ErrorKind::Denied, put_by(&store, "run=a,variable=t", &stranger));
    fails("a flush", ErrorKind::Denied, store.flush(&stranger));
    let id = store.begin()?;
    fails("a decision", ErrorKind::Denied, store.decide(id, true, &stranger));
    put(&store, "run=a,variable=t", b"x")?;
    flush(harness, &store)?;
    let options = ReadOptions { session: stranger };
    assert_eq!(with_key("run=a,variable=t", |pairs| store.get(pairs, &options))?.read()?, b"x");
    Ok(())
}

/// A call that is cancelled, or past its deadline, is Unavailable and loses nothing: a later one without a limit goes on.
pub fn limits_end_calls_early(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let cancel = Cancel::default();
    let limited = [client(1).cancelled_by(cancel.clone()), client(1).until(0)];
    put_by(&store, "run=a,variable=t", &limited[0])?;
    cancel.cancel();
    for (session, code) in limited.iter().zip([Code::Cancelled, Code::DeadlinePassed]) {
        let error = fails("a flush", ErrorKind::Unavailable, store.flush(session));
        assert_eq!(error.code(), code);
        assert_eq!(store.unflushed(), 1);
    }
    store.flush(&client(1))?;
    harness.settle();
    for session in limited {
        let options = ListOptions { session: session.clone(), ..ListOptions::default() };
        fails("a list", ErrorKind::Unavailable, list_with(&store, "", &options));
        let options = RetrieveOptions { session: session.clone(), ..RetrieveOptions::default() };
        fails(
            "a walk of the index",
            ErrorKind::Unavailable,
            store.retrieve(&request("run=a,variable=*")?, &options),
        );
        let options = RemoveOptions { session };
        fails("a removal", ErrorKind::Unavailable, store.remove(&request("run=a")?, &options));
    }
    assert_eq!(listed(&store, "")?.len(), 1);
    Ok(())
}
