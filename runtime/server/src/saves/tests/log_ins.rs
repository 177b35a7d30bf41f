//! Log-ins of players whose records cannot be read: the read panics, or never comes back.

use super::*;

const BOB: ClientId = ClientId(2);

/// Players of a process whose records threads read.
struct Door {
    scene: Scene,
    process: Process,
}

impl Door {
    fn reading(reads: impl FnOnce(Arc<dyn Reads>) -> Arc<dyn Reads>) -> Door {
        let scene = Scene::new();
        let mut process = Process::reading(reads(scene.reads.clone()));
        process.reader = Reader::with_threads(Nanos::from_secs(10)).unwrap();
        Door { scene, process }
    }

    /// A moment on the server's clock.
    fn step(&mut self, length: Nanos) {
        let Door { scene, process: Process { players, reader, now } } = self;
        *now += length;
        players.step(*now, 0, &mut scene.commits, reader);
        while let Some(answer) = scene.commits.take_answer() {
            if let Answered::Lease { key, is_release, outcome } = answer {
                players.take_answer(key.id as u64, is_release, outcome, *now, &mut scene.commits, reader);
            }
        }
    }

    /// What is to become of this log-in in the end, if a look at it is taken so often.
    fn log_in(&mut self, client: ClientId, look_every: Nanos) -> LogIn {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < Duration::from_secs(20), "no answer");
            match self.look(client, look_every) {
                LogIn::Wait => {}
                answer => return answer,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn look(&mut self, client: ClientId, look_every: Nanos) -> LogIn {
        let answer = self.process.players.log_in(client, self.process.now);
        if matches!(answer, LogIn::Refuse(_)) {
            self.process.players.gave_up(client);
        }
        let _ = self.scene.teller.send(Ok(()));
        self.step(look_every);
        answer
    }
}

const IN_TIME: Nanos = Nanos::from_millis(1);
const IS_NEW: LogIn = LogIn::Ready { world: None, is_new: true };

#[test]
fn a_read_that_panics_costs_its_player_s_log_in_alone() {
    // The code that walks the page of Ada's record panics.
    let panics = |key| assert_ne!(key, Key::player(ADA.0), "its page is damaged");
    let mut door = Door::reading(|reads| Arc::new(ReadsAfter(reads, panics)));
    for _ in 0..2 {
        assert_eq!(door.log_in(ADA, IN_TIME), LogIn::Refuse("what is saved of them cannot be read"));
    }
    assert_eq!(door.log_in(BOB, IN_TIME), IS_NEW);
    assert_eq!((door.process.players.records_unreadable, door.process.players.not_read), (2, 0));
}

/// However often she comes back, her read keeps one thread; and when it comes after all, she is let in.
#[test]
fn a_read_that_never_returns_costs_its_player_s_log_in_alone() {
    let gate = Gate::default();
    let of_reads = gate.clone();
    let mut door =
        Door::reading(|reads| Arc::new(ReadsAfter(reads, move |key| of_reads.stay_if(key == Key::player(ADA.0)))));
    wait_until(|| door.look(ADA, IN_TIME) == LogIn::Wait && gate.staying() == 1, "nobody reads it");
    for _ in 0..40 {
        let refused = door.log_in(ADA, Nanos::from_secs(1));
        assert_eq!(refused, LogIn::Refuse("what is saved of them could not be read in time"));
        assert_eq!(gate.staying(), 1);
    }
    assert_eq!(door.log_in(BOB, IN_TIME), IS_NEW);
    assert_eq!((door.process.players.records_unreadable, door.process.players.not_read), (0, 40));
    gate.open();
    wait_until(|| gate.staying() == 0, "it is read");
    assert_eq!(door.log_in(ADA, IN_TIME), IS_NEW);
}
