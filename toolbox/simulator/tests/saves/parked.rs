//! An operator takes a market out: it is saved as it is then, and is there again with all that it had.

use throng::lifecycle::Pending;
use throng_persistence::{Embedded, Store, disk::MemoryDisk};
use throng_simulator::{Simulation, SimulationSettings};

use crate::bazaar::{self, Chest, Customer, Form, Habits, MARKETS};

const PLAYERS: usize = 8;

fn answer<T>(bazaar: &mut Simulation, pending: &Pending<T>) -> T {
    let mut answer = None;
    bazaar.run_until(5.0, |_| {
        answer = pending.try_take();
        answer.is_some()
    });
    answer.expect("in time").expect("it can be done")
}

fn chests(bazaar: &mut Simulation) -> Vec<u32> {
    let server = bazaar.server_mut();
    let markets: Vec<_> = server.worlds().map(|(id, ..)| id).collect();
    let chests = markets.iter().filter_map(|id| Some(server.world_mut(*id)?.ecs().resource::<Chest>().coins));
    chests.collect()
}

#[test]
fn a_parked_world_is_saved_first_and_comes_back_as_it_was() {
    for form in Form::ALL {
        let disk = MemoryDisk::default();
        let store = || -> Box<dyn Store> { Box::new(Embedded::on(Box::new(disk.clone())).unwrap()) };
        let mut settings = SimulationSettings::new(bazaar::protocol().schema(), 3);
        // Nothing is saved by itself.
        settings.server.saves.period_s = 3_600;
        let mut bazaar = bazaar::open(&settings, Some(store()), form);
        let habits = Habits { wishes: 0.5, goes: 0.0, panics: 0.0 };
        (0..PLAYERS).for_each(|_| _ = bazaar.join(Box::new(Customer(habits))));
        bazaar.run_for(10.0);
        assert_eq!(bazaar.totals().playing, PLAYERS as u64);
        let [before, _] = chests(&mut bazaar)[..] else { panic!("two markets") };
        assert!(before > 0);

        let control = bazaar.server_mut().control();
        let out = control.park_worlds("north");
        assert_eq!(answer(&mut bazaar, &out), 1);
        bazaar.run_for(1.0);
        assert_eq!(bazaar.server_mut().worlds_count(), 1, "it is out");
        let wealth = bazaar::look_at(&*store().reader()).unwrap();
        assert_eq!(wealth.purses.len(), PLAYERS, "{wealth:?}");
        let coins = wealth.purses.values().chain(wealth.chests.values()).map(|coins| u64::from(*coins)).sum::<u64>();
        assert_eq!(bazaar::look_at(&*store().reader()).unwrap(), wealth);
        // Deals went on until it went; then all of them were told.
        assert!(wealth.chests[&MARKETS[0]] > 0 && coins > 0);
        assert_eq!(bazaar.server_mut().count_of("server.disconnects"), PLAYERS as u64);

        let back = control.unpark_worlds(Some("north"));
        assert_eq!(answer(&mut bazaar, &back), 1);
        bazaar.run_for(1.0);
        let after = chests(&mut bazaar);
        assert_eq!(after.first(), Some(&wealth.chests[&MARKETS[0]]), "{form:?}: {after:?}");
    }
}
