//! Who is served next: the client that has had least so far, and of its sessions the first.
//!
//! Each client has a counter of the tokens computed for it, divided by its weight (virtual token
//! counters: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024). A client that
//! comes starts a little below the lowest of those that are there: it saves nothing up while it is
//! away, and a few requests of somebody who asks seldom go before the thousandth of somebody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::event::SessionId;

/// A counter's value for a token of a client of weight 1.
const TOKEN: u64 = 1 << 20;

/// Where counters start: far from both ends, as only differences count.
const START: u64 = 1 << 62;

/// How many tokens a client that comes is ahead of the others.
const CREDIT_TOKENS: u64 = 2048;

/// A session makes way for another client's only when its own has had this much more.
const LEAD_TOKENS: u64 = 512;

/// A client's name.
pub(super) type ClientName = Arc<str>;

/// The queue, and who runs.
#[derive(Debug)]
pub(super) struct FairQueue {
    weights: BTreeMap<ClientName, u32>,
    clients: FxHashMap<ClientName, Client>,
    /// All clients by their counters.
    order: BTreeSet<(u64, ClientName)>,
    /// Clients whose counters have grown since they were last ordered.
    charged: BTreeSet<ClientName>,
    /// Where the lowest counter was when there was last a client.
    floor: u64,
    total_weight: u64,
    waiting: usize,
}

#[derive(Debug)]
struct Client {
    used: u64,
    /// Not yet in the order.
    charge: u64,
    weight: u64,
    waiting: BTreeSet<SessionId>,
    running: BTreeSet<SessionId>,
    /// Sessions in all: some are neither waiting nor running.
    sessions: usize,
}

impl FairQueue {
    /// An empty queue. A client without a weight has 1.
    pub(super) fn new(weights: BTreeMap<ClientName, u32>) -> Self {
        Self {
            weights,
            clients: FxHashMap::default(),
            order: BTreeSet::new(),
            charged: BTreeSet::new(),
            floor: START,
            total_weight: 0,
            waiting: 0,
        }
    }

    /// Sessions that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// A new session, which waits.
    pub(super) fn join(&mut self, session: SessionId, name: &ClientName) {
        self.settle();
        let used = match self.order.first() {
            Some((lowest, _)) => lowest.saturating_sub(CREDIT_TOKENS * TOKEN),
            None => self.floor,
        };
        let weight = u64::from(self.weights.get(name).copied().unwrap_or(1).max(1));
        let client = self.clients.entry(Arc::clone(name)).or_insert_with(|| {
            self.order.insert((used, Arc::clone(name)));
            self.total_weight += weight;
            Client {
                used,
                charge: 0,
                weight,
                waiting: BTreeSet::new(),
                running: BTreeSet::new(),
                sessions: 0,
            }
        });
        client.sessions += 1;
        self.waiting += usize::from(client.waiting.insert(session));
    }

    /// A session that waits again.
    pub(super) fn wait(&mut self, session: SessionId, name: &ClientName) {
        let Some(client) = self.clients.get_mut(name) else { return };
        client.running.remove(&session);
        self.waiting += usize::from(client.waiting.insert(session));
    }

    /// A session that runs now.
    pub(super) fn start(&mut self, session: SessionId, name: &ClientName) {
        let Some(client) = self.clients.get_mut(name) else { return };
        self.waiting -= usize::from(client.waiting.remove(&session));
        client.running.insert(session);
    }

    /// A session that does not run any more, nor wait.
    pub(super) fn stop(&mut self, session: SessionId, name: &ClientName) {
        if let Some(client) = self.clients.get_mut(name) {
            client.running.remove(&session);
        }
    }

    /// A session that is gone, wherever it was.
    pub(super) fn leave(&mut self, session: SessionId, name: &ClientName) {
        self.settle();
        let Some(client) = self.clients.get_mut(name) else { return };
        self.waiting -= usize::from(client.waiting.remove(&session));
        client.running.remove(&session);
        client.sessions -= 1;
        if client.sessions == 0 {
            if let Some((lowest, _)) = self.order.first() {
                self.floor = *lowest;
            }
            self.order.remove(&(client.used, Arc::clone(name)));
            self.total_weight -= client.weight;
            self.clients.remove(name);
        }
    }

    /// Tokens are computed for a client.
    pub(super) fn charge(&mut self, name: &ClientName, tokens: u32) {
        let Some(client) = self.clients.get_mut(name) else { return };
        if client.charge == 0 {
            self.charged.insert(Arc::clone(name));
        }
        client.charge += u64::from(tokens) * TOKEN / client.weight;
    }

    /// The session to be served next.
    pub(super) fn first(&mut self) -> Option<SessionId> {
        self.first_of().map(|(_, session)| session)
    }

    /// The same with its client's counter.
    fn first_of(&mut self) -> Option<(u64, SessionId)> {
        if self.waiting == 0 {
            return None;
        }
        self.settle();
        let first = |name| self.clients.get(name)?.waiting.first().copied();
        self.order.iter().find_map(|(used, name)| Some((*used, first(name)?)))
    }

    /// The session that makes way for the first in the queue: the youngest of the client that has
    /// had most, if that is well ahead and keeps half of its share of `slots`, and one at least.
    pub(super) fn make_way(&mut self, slots: usize) -> Option<SessionId> {
        let (behind, _) = self.first_of()?;
        for (used, name) in self.order.iter().rev() {
            if *used < behind + LEAD_TOKENS * TOKEN {
                return None;
            }
            let Some(client) = self.clients.get(name) else { continue };
            let half = slots as u64 * client.weight / (2 * self.total_weight.max(1));
            if client.running.len() as u64 > half.max(1) {
                return client.running.last().copied();
            }
        }
        None
    }

    /// Puts the clients that were charged into their places.
    fn settle(&mut self) {
        while let Some(name) = self.charged.pop_first() {
            let Some(client) = self.clients.get_mut(&name) else { continue };
            self.order.remove(&(client.used, Arc::clone(&name)));
            client.used = client.used.saturating_add(std::mem::take(&mut client.charge));
            self.order.insert((client.used, name));
        }
    }

    /// What must hold after every event; `is_waiting` and `is_running` say what the scheduler
    /// thinks.
    pub(super) fn check(
        &self,
        is_waiting: impl Fn(SessionId) -> bool,
        is_running: impl Fn(SessionId) -> bool,
    ) -> Result<(), String> {
        let waiting: usize = self.clients.values().map(|client| client.waiting.len()).sum();
        let weights: u64 = self.clients.values().map(|client| client.weight).sum();
        if waiting != self.waiting
            || weights != self.total_weight
            || self.order.len() != self.clients.len()
        {
            return Err("the queue has miscounted".to_owned());
        }
        for (name, client) in &self.clients {
            let ordered = self.order.contains(&(client.used, Arc::clone(name)));
            let listed = client.waiting.len() + client.running.len();
            if client.sessions == 0 || listed > client.sessions || !ordered {
                return Err(format!("client {name:?}: {listed} of {} sessions", client.sessions));
            }
            if !client.waiting.iter().all(|&id| is_waiting(id) && !is_running(id))
                || !client.running.iter().all(|&id| is_running(id))
            {
                return Err(format!("client {name:?}: a session is listed where it is not"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(weights: &[(&str, u32)]) -> FairQueue {
        FairQueue::new(weights.iter().map(|&(name, weight)| (name.into(), weight)).collect())
    }

    /// Serves `turns` sessions of ten tokens each and names their clients.
    fn served(queue: &mut FairQueue, turns: usize) -> String {
        let mut names = String::new();
        for _ in 0..turns {
            let Some(session) = queue.first() else { break };
            let name: ClientName = if session.0 < 1000 { "a".into() } else { "b".into() };
            queue.start(session, &name);
            queue.charge(&name, 10);
            queue.leave(session, &name);
            names.push_str(&name);
        }
        names
    }

    fn flood(queue: &mut FairQueue, name: &str, from: u64, count: u64) {
        (from..from + count).for_each(|id| queue.join(SessionId(id), &name.into()));
    }

    #[test]
    fn a_flood_does_not_starve_the_others_and_each_client_is_first_in_first_out() {
        let mut queue = queue(&[]);
        flood(&mut queue, "a", 0, 100);
        flood(&mut queue, "b", 1000, 5);
        let names = served(&mut queue, 200);
        assert!(names.starts_with("bbbbbaaaa"), "{names}");
        assert_eq!(names.matches('a').count(), 100);
        flood(&mut queue, "a", 0, 3);
        assert_eq!(queue.first(), Some(SessionId(0)));
    }

    #[test]
    fn tokens_are_shared_by_weight() {
        let mut queue = queue(&[("b", 3)]);
        flood(&mut queue, "a", 0, 200);
        flood(&mut queue, "b", 1000, 1500);
        let ahead = served(&mut queue, 900).find('a').unwrap();
        assert!((614..617).contains(&ahead), "{ahead}: three times the credit");
        let names = served(&mut queue, 80);
        let share = names.matches('b').count();
        assert!((58..=62).contains(&share), "{share} of 80");
    }

    #[test]
    fn who_comes_back_has_saved_nothing_but_a_credit() {
        let mut queue = queue(&[]);
        flood(&mut queue, "a", 0, 500);
        served(&mut queue, 400);
        flood(&mut queue, "b", 1000, 500);
        let names = served(&mut queue, 300);
        let ahead = names.find('a').unwrap() as u64;
        assert!((CREDIT_TOKENS / 10..CREDIT_TOKENS / 10 + 3).contains(&ahead), "{ahead}");
        assert!(names[ahead as usize..].starts_with("abab"));
    }

    #[test]
    fn one_far_ahead_makes_way_but_keeps_half_of_its_share() {
        let mut queue = queue(&[]);
        let (a, b): (ClientName, ClientName) = ("a".into(), "b".into());
        flood(&mut queue, "a", 0, 8);
        (0..8).for_each(|id| queue.start(SessionId(id), &a));
        flood(&mut queue, "b", 1000, 9);
        let mut gone = Vec::new();
        while let Some(session) = queue.make_way(8) {
            queue.stop(session, &a);
            let next = queue.first().unwrap();
            queue.start(next, &b);
            gone.push(session.0);
        }
        assert_eq!(gone, [7, 6, 5, 4, 3, 2]);
    }

    #[test]
    fn nobody_makes_way_for_one_that_has_had_nearly_as_much() {
        let mut queue = queue(&[]);
        let (a, b): (ClientName, ClientName) = ("a".into(), "b".into());
        flood(&mut queue, "a", 0, 8);
        (0..8).for_each(|id| queue.start(SessionId(id), &a));
        flood(&mut queue, "b", 1000, 1);
        queue.charge(&b, (CREDIT_TOKENS - LEAD_TOKENS + 1) as u32);
        assert_eq!(queue.make_way(8), None);
        queue.charge(&a, 1);
        assert_eq!(queue.make_way(8), Some(SessionId(7)));
    }

    #[test]
    fn clients_that_come_and_go_do_not_use_up_what_others_are_ahead() {
        let mut queue = queue(&[]);
        let (a, b): (ClientName, ClientName) = ("a".into(), "b".into());
        for turn in 0..1000 {
            let (first, second) = if turn % 2 == 0 { (&a, &b) } else { (&b, &a) };
            queue.join(SessionId(1), first);
            queue.start(SessionId(1), first);
            queue.join(SessionId(2), first);
            queue.start(SessionId(2), first);
            queue.join(SessionId(3), second);
            assert_eq!(queue.make_way(2), Some(SessionId(2)), "turn {turn}");
            (1..=2).for_each(|id| queue.leave(SessionId(id), first));
            queue.leave(SessionId(3), second);
        }
    }

    #[test]
    fn a_session_that_leaves_is_nowhere() {
        let mut queue = queue(&[]);
        let name: ClientName = "a".into();
        flood(&mut queue, "a", 0, 3);
        queue.start(SessionId(0), &name);
        queue.stop(SessionId(0), &name);
        queue.leave(SessionId(1), &name);
        queue.check(|id| id.0 == 2, |_| false).unwrap();
        queue.leave(SessionId(0), &name);
        queue.leave(SessionId(2), &name);
        queue.leave(SessionId(2), &name);
        assert_eq!((queue.waiting(), queue.first(), queue.clients.len()), (0, None, 0));
        assert_eq!(queue.total_weight, 0);
    }
}
