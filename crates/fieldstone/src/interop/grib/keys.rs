//! The keys of headers. A known pattern (`format::grib::header`) answers for every header of it; for the rest, one
//! question asks eccodes, in the helper process, about many headers.
//!
//! Two headers establish a pattern (B-7): a real one, and a probe, the same with every number changed that is read
//! here. If eccodes answers for the probe as expected, the pattern answers from then on; if not, eccodes is asked about
//! each header of it, and all bytes of the header identify the answer.
//!
//! Invariants: the bytes that decide an answer identify it; the cache is bounded, and is emptied entirely when it
//! exceeds the bound; a header that crashes the helper only costs that header.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Error, Result};
use fieldstone_format::grib::header::Header;
use fieldstone_format::grib::template::Template;
use fieldstone_format::helper::{GribKey, Request};

use crate::interop::helper::{HelperEvent, Reply, Texts, failure};
use crate::interop::shared_helper::SharedHelper;

/// Bytes of headers and keys in the cache.
const MAX_KNOWN: usize = 64 << 20;
/// Maximum number of headers, and of their bytes, in one question.
const MAX_ASKED: usize = 512;
const MAX_ASKED_BYTES: usize = 8 << 20;

/// The cached answer for a pattern, or for one header.
#[derive(Clone)]
enum CachedKeys {
    Key(Arc<Template>),
    /// The pattern's numbers mean more than is read here: each header has its own answer.
    Each,
}

#[derive(Default)]
struct Cache {
    /// The Python whose eccodes answered.
    python: Option<PathBuf>,
    known: HashMap<Box<[u8]>, CachedKeys>,
    bytes: usize,
}

impl Cache {
    fn insert(&mut self, id: Box<[u8]>, known: CachedKeys) {
        if self.bytes > MAX_KNOWN {
            self.known.clear();
            self.bytes = 0;
        }
        let size = match &known {
            CachedKeys::Key(template) => template.size(),
            CachedKeys::Each => 0,
        };
        self.bytes += id.len() + size + 64;
        self.known.insert(id, known);
    }
}

/// For all stores of this process.
static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl SharedHelper<'_> {
    /// The key of each header, or the reason why it has none. Unavailable if eccodes is needed and missing.
    pub fn keys(&mut self, headers: &[&Header]) -> Result<Vec<std::result::Result<Texts, String>>> {
        let mut found: Vec<Option<std::result::Result<Texts, String>>> = vec![None; headers.len()];
        // If a pattern turns out to mean more, another round asks about its headers.
        for _ in 0..3 {
            let asked = self.look_up(headers, &mut found);
            if asked.is_empty() {
                break;
            }
            self.learn(headers, &asked, &mut found)?;
        }
        let none = || Err("eccodes did not report it".to_owned());
        Ok(found.into_iter().map(|key| key.unwrap_or_else(none)).collect())
    }

    /// Answers from the cache; returns the open questions: the index of one header of each pattern, and whether a probe
    /// goes with it.
    fn look_up(
        &self,
        headers: &[&Header],
        found: &mut [Option<std::result::Result<Texts, String>>],
    ) -> Vec<(usize, bool)> {
        let open: Vec<usize> = (0..headers.len()).filter(|place| found[*place].is_none()).collect();
        let patterns: Vec<Box<[u8]>> = open.iter().map(|place| headers[*place].pattern()).collect();
        let mut asked: HashSet<Box<[u8]>> = HashSet::new();
        let mut order = Vec::new();
        let mut cache = locked(&CACHE);
        let cache = cache.get_or_insert_default();
        if cache.python != self.options.python {
            *cache = Cache { python: self.options.python.clone(), ..Cache::default() };
        }
        for (place, pattern) in open.into_iter().zip(patterns) {
            let header = headers[place];
            let mut known = cache.known.get(&pattern);
            let (id, probe) = match known {
                Some(CachedKeys::Each) => {
                    let id = header.whole();
                    known = cache.known.get(&id);
                    (id, false)
                }
                _ => (pattern, header.is_read()),
            };
            if let Some(CachedKeys::Key(template)) = known {
                found[place] = Some(Ok(template.key(header)));
            } else if asked.insert(id) {
                order.push((place, probe));
            }
        }
        order
    }

    fn learn(
        &mut self,
        headers: &[&Header],
        asked: &[(usize, bool)],
        found: &mut [Option<std::result::Result<Texts, String>>],
    ) -> Result<()> {
        let probes: Vec<Option<Header>> =
            asked.iter().map(|(place, probe)| probe.then(|| headers[*place].probe())).collect();
        let messages = asked.iter().zip(&probes).flat_map(|((place, _), probe)| {
            [Some(headers[*place].message()), probe.as_ref().map(Header::message)].into_iter().flatten()
        });
        let messages: Vec<Vec<u8>> = messages.collect();
        let mut answers = self.ask(&messages, false)?.into_iter();
        let mut cache = locked(&CACHE);
        let cache = cache.get_or_insert_default();
        for ((place, _), probe) in asked.iter().zip(probes) {
            let header = headers[*place];
            let own = answers.next().unwrap_or_else(|| Err("eccodes did not report it".to_owned()));
            let own = own.map(|answer| answer.key);
            if let Some(probe) = probe {
                let probed = answers.next().and_then(std::result::Result::ok).map(|answer| answer.key);
                let template = own.as_ref().ok().and_then(|key| Template::new(header, key));
                match template.filter(|template| probed.is_some_and(|key| same(template.key(&probe), key))) {
                    Some(template) => cache.insert(header.pattern(), CachedKeys::Key(Arc::new(template))),
                    None => {
                        cache.insert(header.pattern(), CachedKeys::Each);
                        if let Ok(key) = &own {
                            cache.insert(header.whole(), CachedKeys::Key(Arc::new(Template::fixed(key))));
                        }
                    }
                }
            } else if let Ok(key) = &own {
                // If nothing is read of a header, the pattern is the whole header.
                let id = if header.is_read() { header.whole() } else { header.pattern() };
                cache.insert(id, CachedKeys::Key(Arc::new(Template::fixed(key))));
            }
            found[*place] = Some(own);
        }
        Ok(())
    }

    /// The facts that distinguish a message from others with its key.
    pub fn apart(&mut self, header: &Header) -> Result<Texts> {
        let answer = self.ask(&[header.message()], true)?.into_iter().next();
        Ok(answer.and_then(std::result::Result::ok).map(|answer| answer.apart).unwrap_or_default())
    }

    /// Asks eccodes about messages.
    fn ask(
        &mut self,
        messages: &[Vec<u8>],
        apart: bool,
    ) -> Result<Vec<std::result::Result<GribKey, String>>> {
        let mut answers = Vec::with_capacity(messages.len());
        let mut rest = messages;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |message: &&Vec<u8>| {
                bytes += message.len();
                bytes <= MAX_ASKED_BYTES
            };
            let n = rest.iter().take(MAX_ASKED).take_while(fits).count().max(1);
            let (some, more) = rest.split_at(n);
            rest = more;
            match self.ask_once(some, apart)? {
                Ok(answer) if answer.len() == n => answers.extend(answer),
                Ok(answer) => {
                    let counts = format!("{} keys for {n} messages", answer.len());
                    return Err(Error::internal(format!("the helper sent {counts}")));
                }
                Err(how) if n == 1 => answers.push(Err(format!("reader {how}"))),
                // One of them ended the helper: ask about each alone to find it.
                Err(_) => {
                    for message in some {
                        let answer = self.ask_once(std::slice::from_ref(message), apart)?;
                        let answer = answer.map(|answer| answer.into_iter().next());
                        answers.push(match answer {
                            Ok(Some(answer)) => answer,
                            Ok(None) => Err("eccodes did not report it".to_owned()),
                            Err(how) => Err(format!("reader {how}")),
                        });
                    }
                }
            }
        }
        Ok(answers)
    }

    /// Asks one question; the inner error describes how the helper ended.
    fn ask_once(
        &mut self,
        messages: &[Vec<u8>],
        apart: bool,
    ) -> Result<std::result::Result<Vec<std::result::Result<GribKey, String>>, String>> {
        let lengths: Vec<usize> = messages.iter().map(Vec::len).collect();
        let payload: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut answer = None;
        let helper = self.get()?;
        helper.send(&Request::GribKeys { lengths: &lengths, apart }, &payload)?;
        loop {
            let event = self.get()?.next().inspect_err(|_| self.helper = None)?;
            match event {
                HelperEvent::Died(_) if std::mem::take(&mut self.reused) => {
                    self.helper = None;
                    return self.ask_once(messages, apart);
                }
                HelperEvent::Died(how) => {
                    self.helper = None;
                    return Ok(Err(how));
                }
                HelperEvent::Reply(Reply::GribKeys(keys), _) => answer = Some(keys),
                HelperEvent::Reply(Reply::Done, _) => {
                    self.answered = true;
                    self.reused = false;
                    return Ok(Ok(answer.unwrap_or_default()));
                }
                HelperEvent::Reply(Reply::Failed { code, message, hint }, _) => {
                    return Err(failure(code, message, hint));
                }
                HelperEvent::Reply(..) => {
                    self.helper = None;
                    return Err(Error::internal("the helper answered another question"));
                }
            }
        }
    }
}

/// Whether two keys have the same pairs, in any order.
fn same(mut a: Texts, mut b: Texts) -> bool {
    a.sort_unstable();
    b.sort_unstable();
    a == b
}
