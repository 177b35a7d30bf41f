//! The whole game over real sockets: a server with all its worlds, and bots that play it.
//!
//! Promise: bots get in, travel through portals without reconnecting, fight, and nothing that they are told is wrong.

use std::net::SocketAddr;

use precinct::{
    PrecinctBot, PrecinctSettings,
    bot::{BotGuide, Itinerary},
    build, schema,
};
use throng::{
    Server,
    settings::{Settings, Workers},
};
use throng_bots::{Swarm, SwarmSettings, TokenSigner, Tokens};
use throng_net::protocol::{PrivateKey, ProtocolId};
use throng_platform::signals::StopFlag;

const KEY: [u8; 32] = [42; 32];
const PLAYERS: usize = 12;
const NPCS: usize = 200;

#[test]
fn bots_play_all_worlds_and_find_nothing_wrong() {
    let mut settings = Settings::default();
    settings.server.address = SocketAddr::from(([127, 0, 0, 1], 0));
    settings.server.workers = Workers::Count(2);
    settings.server.audit_samples = true;
    let protocol_id = ProtocolId(settings.server.protocol_id);
    let mut server = Server::bind(&settings, schema(), PrivateKey::new(KEY)).unwrap();
    let precinct = PrecinctSettings { players: PLAYERS, npcs: NPCS, ..PrecinctSettings::default() };
    let worlds = build(&mut server, &precinct).unwrap();
    assert_eq!((server.worlds_count(), worlds.hideouts.alive().len()), (2, 0), "hideouts come with their owners");
    let address = server.local_addr();
    let control = server.control();

    let playing = std::thread::spawn(move || {
        let private_key = PrivateKey::new(KEY);
        let signer = TokenSigner { protocol_id, private_key, client_id_first: 1, timeout_s: 10, audited_one_in: 1 };
        let mut swarm = SwarmSettings::new(address, PLAYERS, Tokens::Signed(signer));
        swarm.seconds = Some(15);
        swarm.threads = Some(3);
        let guide = BotGuide::load();
        // Restless, so that a short test sees many travels.
        let itinerary = Itinerary { at_home_s: 0.5..3.0, away_s: 0.5..3.0, ..Itinerary::default() };
        let make = move |_| Box::new(PrecinctBot::with_itinerary(guide.clone(), itinerary.clone())) as Box<_>;
        let report = Swarm::run(swarm, schema(), make, StopFlag::new().unwrap(), &mut |_| {});
        control.stop();
        report.unwrap()
    });
    let server_report = server.run(&StopFlag::new().unwrap(), &mut |_| {}).unwrap();
    let report = playing.join().unwrap();
    assert_eq!(worlds.hideouts.alive().len(), PLAYERS);
    println!("{report:#?}\n{server_report:#?}");

    assert_eq!(report.players_connected, PLAYERS as u64);
    assert_eq!(report.disconnects, 0);
    assert_eq!(report.protocol_errors, 0);
    assert!(report.state_checks > 100);
    assert_eq!(report.state_errors, 0);
    let counter = |name: &str| report.counters.get(name).copied().unwrap_or_default();
    assert_eq!(counter("violations"), 0);
    assert!(counter("travels") >= PLAYERS as u64 / 2, "{}", counter("travels"));
    assert!(counter("shots") > 0);
}
