//! What waits for a client to come back: by the id it was given, for a while, once, and within bounds.
//!
//! Forms of pml's own, calls whose Legacy server asked something, and calls that were let through before their Modern
//! server did are all kept so. A retry is the client's own word: it finds only what was kept for the very same call.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use uuid::Uuid;

use crate::protocol::Digest;

/// More calls than a person can have forms open for; the oldest goes first.
const LIMIT: usize = 1000;

/// How many bytes of calls are kept: a few of the largest, and all that people have forms open for.
const BUDGET: usize = 64 << 20;

/// What waits for a client.
pub(crate) trait ParkedItem {
    /// Returns how many bytes are held by keeping it.
    fn bytes(&self) -> usize;
}

/// The calls that wait.
pub(crate) struct Parking<T>(Mutex<ParkedSlots<T>>);

struct ParkedSlots<T> {
    calls: HashMap<Uuid, ParkedSlot<T>>,
    next: u64,
    bytes: usize,
    sweep: Sweep,
}

/// Whether a task waits for the first of them to be overdue: one for all, however many come and go.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sweep {
    #[default]
    Idle,
    Waiting,
}

struct ParkedSlot<T> {
    number: u64,
    /// What a retry must share with the call it is kept for; without it no retry finds it.
    gist: Option<Digest>,
    until: Instant,
    call: T,
    /// What it held when it was last weighed.
    bytes: usize,
}

impl<T> Default for Parking<T> {
    fn default() -> Self {
        Self(Mutex::new(ParkedSlots {
            calls: HashMap::new(),
            next: 0,
            bytes: 0,
            sweep: Sweep::Idle,
        }))
    }
}

impl<T: ParkedItem> ParkedSlots<T> {
    fn remove(&mut self, id: Uuid) -> Option<ParkedSlot<T>> {
        let place = self.calls.remove(&id)?;
        self.bytes -= place.bytes;
        Some(place)
    }

    /// Takes the calls whose time has come.
    fn overdue(&mut self, now: Instant) -> Vec<T> {
        let overdue = self.calls.iter().filter(|(_, place)| place.until <= now);
        let overdue: Vec<Uuid> = overdue.map(|(id, _)| *id).collect();
        let taken = overdue.into_iter().filter_map(|id| self.remove(id));
        taken.map(|place| place.call).collect()
    }

    /// Counts what a call holds now, and takes the calls that have to make room.
    fn weigh(&mut self, id: Uuid) -> Vec<T> {
        if let Some(place) = self.calls.get_mut(&id) {
            self.bytes -= place.bytes;
            place.bytes = place.call.bytes();
            self.bytes += place.bytes;
        }
        let mut displaced = Vec::new();
        while self.calls.len() > LIMIT || (self.bytes > BUDGET && self.calls.len() > 1) {
            let oldest = self.calls.iter().min_by_key(|(_, place)| place.number);
            let oldest = oldest.map(|(id, _)| *id);
            displaced.extend(
                oldest
                    .and_then(|oldest| self.remove(oldest))
                    .map(|place| place.call),
            );
        }
        displaced
    }
}

impl<T: ParkedItem> Parking<T> {
    /// Keeps what belongs to the call with this gist until then; returns what finds it again, and what goes.
    pub(crate) fn keep(&self, call: T, gist: Option<Digest>, until: Instant) -> (Uuid, Vec<T>) {
        let id = Uuid::new_v4();
        (id, self.keep_as(id, call, gist, until))
    }

    /// Keeps it under an id that the client knows; returns what was there, is overdue or had to make room for it.
    pub(crate) fn keep_as(&self, id: Uuid, call: T, gist: Option<Digest>, until: Instant) -> Vec<T> {
        let mut places = self.lock();
        places.next += 1;
        let place = ParkedSlot {
            number: places.next,
            gist,
            until,
            call,
            bytes: 0,
        };
        let mut gone = places.overdue(Instant::now());
        gone.extend(places.remove(id).map(|place| place.call));
        places.calls.insert(id, place);
        gone.extend(places.weigh(id));
        gone
    }

    /// Takes note that a call holds more or less than before; returns the calls that had to make room for it.
    pub(crate) fn weigh(&self, id: Uuid) -> Vec<T> {
        self.lock().weigh(id)
    }

    /// Takes what was kept for the call that a retry with this gist makes again, if its time has not come.
    pub(crate) fn take(&self, id: Uuid, now: Instant, gist: Option<&Digest>) -> ParkedMatch<T> {
        self.take_place(id, now, |place| {
            place.gist.is_some() && place.gist.as_ref() == gist
        })
    }

    /// Takes what is wanted, whichever call asks for it: a continuation is a call of its own.
    pub(crate) fn take_if(&self, id: Uuid, now: Instant, wanted: impl FnOnce(&T) -> bool) -> ParkedMatch<T> {
        self.take_place(id, now, |place| wanted(&place.call))
    }

    fn take_place(
        &self,
        id: Uuid,
        now: Instant,
        wanted: impl FnOnce(&ParkedSlot<T>) -> bool,
    ) -> ParkedMatch<T> {
        let mut places = self.lock();
        match places.calls.get(&id).filter(|place| place.until > now) {
            None => ParkedMatch::Nothing,
            Some(place) if !wanted(place) => ParkedMatch::Another,
            Some(_) => places
                .remove(id)
                .map_or(ParkedMatch::Nothing, |place| ParkedMatch::Wanted(place.call)),
        }
    }

    /// Takes the calls whose time has come, and tells when that of the next one does; then a sweep waits for it.
    fn overdue(&self, now: Instant) -> (Vec<T>, Option<Instant>) {
        let mut places = self.lock();
        let taken = places.overdue(now);
        let next = places.calls.values().map(|place| place.until).min();
        places.sweep = next.map_or(Sweep::Idle, |_| Sweep::Waiting);
        (taken, next)
    }

    /// Returns when the first sweep is due; `None` where one waits already, or has nothing to wait for.
    pub(crate) fn begin_sweep(&self) -> Option<Instant> {
        let mut places = self.lock();
        if places.sweep == Sweep::Waiting {
            return None;
        }
        let first = places.calls.values().map(|place| place.until).min()?;
        places.sweep = Sweep::Waiting;
        Some(first)
    }

    fn lock(&self) -> MutexGuard<'_, ParkedSlots<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives up the calls that nobody came back for in time, from `at` on and as long as any are kept.
pub(crate) async fn sweep<S, T: ParkedItem>(
    owner: Weak<S>,
    parking: fn(&S) -> &Parking<T>,
    mut at: Instant,
    give_up: fn(T),
) {
    loop {
        tokio::time::sleep_until(at.into()).await;
        let Some(owner) = owner.upgrade() else { return };
        let (overdue, next) = parking(&owner).overdue(Instant::now());
        overdue.into_iter().for_each(give_up);
        let Some(next) = next else { return };
        at = next;
    }
}

/// What a state led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParkedMatch<T> {
    /// The call that is wanted, which waits no longer.
    Wanted(T),
    /// A call that is not wanted, and waits on.
    Another,
    /// Nothing, or what is too old.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    /// Something of so many bytes.
    #[derive(Debug, PartialEq, Eq)]
    struct Heavy(usize);

    impl ParkedItem for Heavy {
        fn bytes(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn what_nobody_comes_back_for_in_time_is_gone() {
        let parking = Parking::default();
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let (early, _) = parking.keep(Heavy(1), None, now + second);
        let (late, _) = parking.keep(Heavy(2), None, now + 2 * second);
        assert_eq!(
            parking.take_if(early, now + second, |_| true),
            ParkedMatch::Nothing
        );
        assert_eq!(parking.overdue(now), (Vec::new(), Some(now + second)));
        assert_eq!(
            parking.overdue(now + second),
            (vec![Heavy(1)], Some(now + 2 * second))
        );
        assert_eq!(
            parking.take_if(late, now + second, |_| false),
            ParkedMatch::Another
        );
        assert_eq!(
            parking.take_if(late, now + second, |_| true),
            ParkedMatch::Wanted(Heavy(2))
        );
        assert_eq!(
            parking.take_if(late, now + second, |_| true),
            ParkedMatch::Nothing
        );
        assert_eq!(parking.lock().bytes, 0);
    }

    #[test]
    fn what_is_kept_is_brought_back_once_and_by_its_own_call() {
        let parking = Parking::default();
        let now = Instant::now();
        let (call, other) = (Digest::of(["call"]), Digest::of(["other"]));
        let until = now + Duration::from_secs(1);
        let (id, _) = parking.keep(Heavy(1), Some(call.clone()), until);
        assert_eq!(
            parking.take(Uuid::new_v4(), now, Some(&call)),
            ParkedMatch::Nothing
        );
        assert_eq!(parking.take(id, now, Some(&other)), ParkedMatch::Another);
        assert_eq!(parking.take(id, now, None), ParkedMatch::Another);
        assert_eq!(parking.take(id, now, Some(&call)), ParkedMatch::Wanted(Heavy(1)));
        assert_eq!(parking.take(id, now, Some(&call)), ParkedMatch::Nothing);
        let (nameless, _) = parking.keep(Heavy(1), None, until);
        assert_eq!(parking.take(nameless, now, None), ParkedMatch::Another);
    }

    #[test]
    fn what_is_kept_under_an_id_again_replaces_what_was_there() {
        let parking = Parking::default();
        let until = Instant::now() + Duration::from_secs(1);
        let id = Uuid::new_v4();
        assert_eq!(parking.keep_as(id, Heavy(1), None, until), []);
        assert_eq!(parking.keep_as(id, Heavy(2), None, until), [Heavy(1)]);
        assert_eq!(parking.lock().bytes, 2);
    }

    #[tokio::test]
    async fn one_timer_waits_however_many_calls_come_and_go() {
        let lot = Arc::new(Parking::default());
        let tasks = tokio_util::task::TaskTracker::new();
        let until = Instant::now() + Duration::from_millis(20);
        for _ in 0..5000 {
            let (id, _) = lot.keep(Heavy(1), None, until);
            if let Some(at) = lot.begin_sweep() {
                tasks.spawn(sweep(Arc::downgrade(&lot), |lot| lot, at, drop));
            }
            let gone = lot.take_if(id, Instant::now(), |_| true);
            assert!(matches!(gone, ParkedMatch::Wanted(_) | ParkedMatch::Nothing));
        }
        assert_eq!(tasks.len(), 1);
        lot.keep(Heavy(1), None, until);
        tasks.close();
        tasks.wait().await;
        assert_eq!(lot.lock().bytes, 0, "what is overdue is given up");
        lot.keep(Heavy(1), None, until);
        assert!(lot.begin_sweep().is_some(), "the next call has a timer again");
    }

    #[test]
    fn what_is_kept_has_a_bound_in_number_and_in_bytes_and_the_newest_stays() {
        let until = Instant::now() + Duration::from_secs(1);
        let parking = Parking::default();
        let displaced: Vec<Heavy> = (0..LIMIT + 2)
            .flat_map(|size| parking.keep(Heavy(size), None, until).1)
            .collect();
        assert_eq!(displaced, [Heavy(0), Heavy(1)]);
        let parking = Parking::default();
        for _ in 0..3 {
            parking.keep(Heavy(BUDGET / 3), None, until);
        }
        let (newest, displaced) = parking.keep(Heavy(BUDGET / 2), None, until);
        assert_eq!(displaced, [Heavy(BUDGET / 3), Heavy(BUDGET / 3)]);
        let (larger, displaced) = parking.keep(Heavy(BUDGET * 2), None, until);
        assert_eq!(displaced.len(), 2);
        let now = Instant::now();
        assert_eq!(parking.take_if(newest, now, |_| true), ParkedMatch::Nothing);
        assert_eq!(
            parking.take_if(larger, now, |_| true),
            ParkedMatch::Wanted(Heavy(BUDGET * 2))
        );
    }

    /// Something whose weight changes.
    #[derive(Debug)]
    struct Growing(Arc<std::sync::atomic::AtomicUsize>);

    impl ParkedItem for Growing {
        fn bytes(&self) -> usize {
            self.0.load(std::sync::atomic::Ordering::Relaxed)
        }
    }

    #[test]
    fn what_comes_for_a_call_that_waits_counts_and_displaces_the_oldest() {
        let until = Instant::now() + Duration::from_secs(1);
        let parking = Parking::default();
        let weight = Arc::new(std::sync::atomic::AtomicUsize::new(1));
        let light = || Growing(Arc::default());
        let (oldest, _) = parking.keep(light(), None, until);
        let (grown, _) = parking.keep(Growing(Arc::clone(&weight)), None, until);
        assert_eq!(parking.weigh(grown).len(), 0);
        weight.store(BUDGET + 1, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(parking.lock().bytes, 1);
        assert_eq!(parking.weigh(grown).len(), 1);
        assert!(matches!(
            parking.take_if(oldest, Instant::now(), |_| true),
            ParkedMatch::Nothing
        ));
        assert_eq!(parking.lock().bytes, BUDGET + 1);
        let displaced = parking.keep(light(), None, until).1;
        assert_eq!(displaced.len(), 1, "the one that grew is the oldest now");
        assert_eq!(parking.lock().bytes, 0);
    }
}
