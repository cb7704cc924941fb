//! Reads the lines of a server from the opening of a session to its end.

use std::sync::Weak;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use super::connection::{Client, Session, Unasked};
use super::ending::Ended;
use super::request_failures::RequestFailures;
use crate::protocol::{DependencyName, Secrets};
use crate::wire::{DrainPolicy, LineReader, Outbox};

impl Session {
    /// Starts reading and writing. `ending` is awaited when the dependency closes its stdout and tells how it ended.
    pub(in crate::loader) fn open(
        (dependency, secrets): (DependencyName, Secrets),
        (source, sink, failures): (
            impl AsyncRead + Unpin + Send + 'static,
            impl AsyncWrite + Unpin + Send + 'static,
            RequestFailures,
        ),
        line_limit: usize,
        tasks: &TaskTracker,
        client: Option<Weak<dyn Client>>,
        unasked: impl Fn(Unasked) + Send + Sync + 'static,
        ending: impl Future<Output = Ended> + Send + 'static,
    ) -> Self {
        let outbox = Outbox::open(sink, DrainPolicy::UntilItStalls, tasks);
        let session = Self::new(dependency, secrets, failures, outbox, client);
        let reading = session.clone();
        let mut reader = LineReader::new(source, line_limit);
        tasks.spawn(async move {
            while let Ok(Some(line)) = reader.next_line().await {
                // What was dismissed is read to its end, so that it can go, and not heard.
                if reading.ended().is_some() {
                    continue;
                }
                reading.receive(line, &unasked);
                if let Some(client) = reading.client() {
                    client.outbox().room().await;
                }
                reading.wait_for_unread_answers().await;
            }
            drop(reader);
            // A dependency that closed its stdout answers nothing any more: it is asked to go.
            reading.close();
            let ended = ending.await;
            reading.end(ended);
        });
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::process::Exit;
    use crate::loader::session::connection::lock;
    use crate::loader::session::repeated_reply::LONG;
    use crate::loader::session::reply::Reply;
    use crate::loader::session::{Caller, EndReason, Failure, Inquiry, OfferResult};
    use crate::protocol::{ListKind, Payload, ResponseOutcome};
    use bytes::Bytes;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
    use tokio::sync::mpsc;

    struct Peer {
        session: Session,
        heard: tokio::io::Lines<BufReader<DuplexStream>>,
        speak: DuplexStream,
        unasked: mpsc::UnboundedReceiver<Unasked>,
    }

    fn peer() -> Peer {
        peer_with_lines_of(1000)
    }

    fn peer_with_lines_of(line_limit: usize) -> Peer {
        let (stdin, heard) = tokio::io::duplex(1 << 16);
        let (speak, stdout) = tokio::io::duplex(1 << 16);
        let (tell, unasked) = mpsc::unbounded_channel();
        let session = Session::open(
            ("fake".parse().unwrap(), Secrets::new([("TOKEN", "abcdefgh")])),
            (stdout, stdin, RequestFailures::default()),
            line_limit,
            &TaskTracker::new(),
            None,
            move |event| {
                let _ = tell.send(event);
            },
            async {
                Ended {
                    reason: EndReason::Exited(Exit::Code(3)),
                    stderr: "boom".to_owned(),
                }
            },
        );
        Peer {
            session,
            heard: BufReader::new(heard).lines(),
            speak,
            unasked,
        }
    }

    impl Peer {
        async fn hears(&mut self) -> String {
            self.heard.next_line().await.unwrap().unwrap()
        }

        async fn says(&mut self, line: &str) {
            self.speak
                .write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
        }

        fn call(&self) -> (u64, mpsc::UnboundedReceiver<String>) {
            self.caller(OfferResult::No)
        }

        fn caller(&self, takes: OfferResult) -> (u64, mpsc::UnboundedReceiver<String>) {
            let (told, heard) = mpsc::unbounded_channel();
            (self.session.register(Arc::new(Recording { told, takes })), heard)
        }
    }

    struct Recording {
        told: mpsc::UnboundedSender<String>,
        takes: OfferResult,
    }

    impl Recording {
        fn note(&self, text: String) {
            let _ = self.told.send(text);
        }
    }

    impl Caller for Recording {
        fn progressed(&self, _line: &Bytes, params: &Payload<'_>) {
            self.note(format!("progress {}", params.get()));
        }

        fn replied(self: Arc<Self>, _line: &Bytes, outcome: &ResponseOutcome<'_>) {
            self.note(match outcome {
                ResponseOutcome::Result(payload) => format!("result {}", payload.get()),
                ResponseOutcome::Error(raw) => format!("error {raw}"),
            });
        }

        fn failed(&self, failure: Failure) {
            self.note(match failure {
                Failure::Unusable(why) => format!("unusable {why}"),
                Failure::Ended(ended) => format!("ended {} {}", ended.reason, ended.stderr),
            });
        }

        fn asked(self: Arc<Self>, inquiry: &Arc<Inquiry>) -> OfferResult {
            self.note(format!("asked {}", inquiry.method));
            self.takes
        }
    }

    #[tokio::test]
    async fn a_call_gets_its_progress_in_order_and_its_raw_result() {
        let mut peer = peer();
        let (id, mut told) = peer.call();
        peer.session
            .send(id, "tools/call", [Bytes::from_static(br#"{"x": 1.0}"#)]);
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x": 1.0}}"#
        );
        for step in 1..=3 {
            peer.says(&format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":1,"progress":{step}}}}}"#
            ))
            .await;
        }
        peer.says(r#"{"id":1,"result":{ "a":1.0 }}"#).await;
        for step in 1..=3 {
            assert_eq!(
                told.recv().await.unwrap(),
                format!(r#"progress {{"progressToken":1,"progress":{step}}}"#)
            );
        }
        assert_eq!(told.recv().await.unwrap(), r#"result { "a":1.0 }"#);
        assert!(!peer.session.is_busy());
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_cancelled_downstream_and_a_finished_one_is_not() {
        let mut peer = peer();
        let (done, mut told) = peer.call();
        peer.session.send(done, "a", [Bytes::from_static(b"{}")]);
        peer.hears().await;
        peer.says(r#"{"id":"1","result":1}"#).await;
        assert_eq!(told.recv().await.unwrap(), "result 1");
        peer.session.cancel(done, "{}");
        let mut dropped = Box::pin(peer.session.request("b", "{}"));
        let polled =
            std::future::poll_fn(|waker| std::task::Poll::Ready(dropped.as_mut().poll(waker).is_pending()));
        assert!(polled.await);
        drop(dropped);
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":2,"method":"b","params":{}}"#
        );
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"pml no longer waits for it"}}"#
        );
        assert!(!peer.session.is_busy());
    }

    #[tokio::test]
    async fn an_error_that_repeats_a_secret_is_passed_on_without_it_and_a_result_as_it_is() {
        let mut peer = peer();
        let (_, mut first) = peer.call();
        let (_, mut second) = peer.call();
        let (_, mut third) = peer.call();
        peer.says(r#"{"id":1,"error":{ "code":5,"message":"bad \u0061bcdefgh"}}"#)
            .await;
        peer.says(r#"{"id":2,"error":{ "code":5 }}"#).await;
        peer.says(r#"{"id":3,"result":"abcdefgh"}"#).await;
        assert_eq!(
            first.recv().await.unwrap(),
            r#"error { "code":5,"message":"bad [TOKEN]"}"#
        );
        assert_eq!(second.recv().await.unwrap(), r#"error { "code":5 }"#);
        assert_eq!(third.recv().await.unwrap(), r#"result "abcdefgh""#);
    }

    #[tokio::test]
    async fn a_dying_dependency_tells_every_waiting_call_and_every_later_one() {
        let mut peer = peer();
        let (id, mut told) = peer.call();
        peer.session.send(id, "a", [Bytes::from_static(b"{}")]);
        peer.hears().await;
        let Peer { session, speak, .. } = peer;
        drop(speak);
        assert_eq!(told.recv().await.unwrap(), "ended exited with code 3 boom");
        let (told, mut later) = mpsc::unbounded_channel();
        session.register(Arc::new(Recording {
            told,
            takes: OfferResult::No,
        }));
        assert_eq!(later.recv().await.unwrap(), "ended exited with code 3 boom");
        assert!(session.ended().is_some());
    }

    #[tokio::test]
    async fn sloppy_lines_cost_only_the_call_they_belong_to() {
        let mut peer = peer();
        let (_, mut first) = peer.call();
        let (_, mut second) = peer.call();
        let (_, mut third) = peer.call();
        let (_, mut fourth) = peer.call();
        peer.says("Welcome to the server!").await;
        peer.says(r#"{"id":99,"result":{}}"#).await;
        peer.says(&format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(2000)))
            .await;
        peer.says(r#"{"id":2,"result":1,"error":{"code":1}}"#).await;
        peer.says(r#"[{"id":3.0,"error":{"code":5},"jsonrpc":"2.0"},{"id":4,"error":null,"result":{}}]"#)
            .await;
        assert_eq!(
            first.recv().await.unwrap(),
            "unusable its answer is longer than the line limit"
        );
        assert_eq!(
            second.recv().await.unwrap(),
            "unusable its answer is not a JSON-RPC message: it has both `result` and `error`"
        );
        assert_eq!(third.recv().await.unwrap(), r#"error {"code":5}"#);
        assert_eq!(fourth.recv().await.unwrap(), "result {}");
    }

    #[tokio::test]
    async fn what_nobody_can_answer_is_declined_and_what_it_tells_is_passed_on() {
        let mut peer = peer();
        peer.says(r#"{"id":"p","method":"ping"}"#).await;
        assert_eq!(peer.hears().await, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
        peer.says(r#"{"id":7,"method":"roots/list"}"#).await;
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"the client does not take `roots/list`"}}"#
        );
        peer.says(r#"{"method":"notifications/tools/list_changed"}"#)
            .await;
        assert_eq!(peer.unasked.recv().await, Some(Unasked::Changed(ListKind::Tools)));
    }

    /// Lets everything that can go on do so.
    async fn rest(session: &Session) {
        loop {
            let before = session.queued();
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            if session.queued() == before {
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_dependency_that_asks_and_does_not_read_is_not_read_from() {
        const COUNT: usize = 40_000;
        let Peer {
            session,
            mut heard,
            mut speak,
            ..
        } = peer();
        let id = "x".repeat(900);
        let asking = tokio::spawn(async move {
            for _ in 0..COUNT {
                let ping = format!("{{\"id\":\"{id}\",\"method\":\"ping\"}}\n");
                speak.write_all(ping.as_bytes()).await.unwrap();
            }
            speak
        });
        rest(&session).await;
        assert!(!asking.is_finished());
        // The budget of the queue, what may stand in it beyond that, and the last line.
        let queued = session.queued();
        assert!(queued < 10 * 1024 * 1024, "{queued} bytes wait");
        // Once it reads, it gets everything.
        for _ in 0..COUNT {
            heard.next_line().await.unwrap().unwrap();
        }
        drop(asking.await.unwrap());
    }

    #[tokio::test]
    async fn a_dependency_that_does_not_read_can_be_closed() {
        let Peer {
            session, mut speak, ..
        } = peer();
        let (id, mut told) = {
            let (told, heard) = mpsc::unbounded_channel();
            let takes = OfferResult::No;
            (session.register(Arc::new(Recording { told, takes })), heard)
        };
        session.send(id, "a", [Bytes::from_static(b"{}")]);
        let asking = tokio::spawn(async move {
            let ping = format!("{{\"id\":\"{}\",\"method\":\"ping\"}}\n", "x".repeat(900));
            while speak.write_all(ping.as_bytes()).await.is_ok() {
                tokio::task::yield_now().await;
            }
        });
        rest(&session).await;
        session.close();
        // It is read from again, so that its end is seen.
        asking.abort();
        assert_eq!(told.recv().await.unwrap(), "ended exited with code 3 boom");
    }

    #[tokio::test]
    async fn what_a_dependency_asks_while_it_is_opened_is_not_kept_for_ever() {
        let mut peer = peer();
        let session = peer.session.clone();
        let patience = tokio::spawn(async move { session.decline_after(Duration::from_millis(1)).await });
        for id in ["1", "2"] {
            peer.session.offer(inquiry(&peer.session, id));
            assert_eq!(
                peer.hears().await,
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"the client does not take `roots/list`"}}}}"#
                )
            );
        }
        patience.abort();
    }

    fn inquiry(session: &Session, id: &str) -> Arc<Inquiry> {
        lock(&session.0.inquiries).push(id.to_owned());
        Arc::new(Inquiry {
            id: id.to_owned(),
            method: "roots/list".to_owned(),
            params: None,
        })
    }

    #[tokio::test]
    async fn a_request_is_offered_to_the_newest_call_first_and_kept_for_the_first_one() {
        let mut peer = peer();
        peer.session.offer(inquiry(&peer.session, "1"));
        let (_, mut taking) = peer.caller(OfferResult::Yes);
        let (_, mut refusing) = peer.caller(OfferResult::No);
        peer.session.settle();
        assert_eq!(refusing.recv().await.unwrap(), "asked roots/list");
        assert_eq!(taking.recv().await.unwrap(), "asked roots/list");
        peer.session.answer("1", Bytes::from_static(br#"{"roots":[]}"#));
        // Answered once only.
        peer.session.answer("1", Bytes::from_static(b"{}"));
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#
        );
        peer.session.cancel(1, "{}");
        peer.session.cancel(2, "{}");
        peer.hears().await;
        peer.hears().await;
        peer.session.offer(inquiry(&peer.session, "2"));
        assert_eq!(
            peer.hears().await,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"the client does not take `roots/list`"}}"#
        );
    }

    #[tokio::test]
    async fn a_reply_that_is_given_again_reaches_whoever_waits_and_another_one_is_read() {
        let mut peer = peer_with_lines_of(1 << 20);
        let list = |last: char| format!(r#"{{"tools":["{}{last}"]}}"#, "x".repeat(LONG));
        for (round, last) in "aaabba".chars().enumerate() {
            let asking = peer.session.clone();
            let asked = tokio::spawn(async move { asking.ask_again("tools/list", "{}").await });
            let id = round + 1;
            assert!(peer.hears().await.contains(&format!(r#""id":{id},"#)));
            peer.says(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
                list(last)
            ))
            .await;
            let Reply::Result(result) = asked.await.unwrap().reply else {
                panic!("it was answered")
            };
            assert_eq!(result, list(last), "round {round}");
        }
        // A call that is answered by the same bytes looks into them as into any others.
        let (id, mut told) = peer.call();
        peer.says(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
            list('a')
        ))
        .await;
        assert_eq!(
            told.recv().await.unwrap().len(),
            list('a').len() + "result ".len()
        );
    }
}
