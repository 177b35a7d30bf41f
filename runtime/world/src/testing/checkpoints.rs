//! Checkpoints in a test: what a kind of world forgets, and whether a loaded world goes on as the one that was saved.

use bevy_ecs::{component::ComponentId, resource::IsResource};

use super::TestWorld;
use crate::{
    checkpoint::{CheckpointError, LoadError, PlayerEntities, engine_types},
    ids::ClientKey,
    mail::MailItem,
};

impl TestWorld {
    /// The world's state as bytes.
    ///
    /// # Errors
    /// If its kind registers nothing, or a value breaks its type's limits.
    pub fn checkpoint(&mut self, players: PlayerEntities) -> Result<Vec<u8>, CheckpointError> {
        let mut bytes = Vec::new();
        self.world.checkpoint(players, &mut bytes)?;
        Ok(bytes)
    }

    /// Becomes the world of a checkpoint: one that has not ticked.
    ///
    /// # Errors
    /// If the bytes are no checkpoint of such a world.
    pub fn load(&mut self, bytes: &[u8], players: PlayerEntities) -> Result<(), LoadError> {
        self.world.load_checkpoint(bytes, players)
    }

    /// Components and resources that the world has and its kind neither keeps
    /// ([`WorldBuilder::checkpoint`](crate::world_builder::WorldBuilder::checkpoint)) nor calls
    /// [`transient`](crate::world_builder::WorldBuilder::transient): they are lost when it is loaded. By name, sorted. What is
    /// the engine's own is not among them.
    ///
    /// A test runs the world until all that can be in it has been there, and expects none. Of Bevy's resources that a
    /// game brought with it (messages, states) each is named.
    pub fn forgotten(&self) -> Vec<String> {
        let world = self.world.ecs();
        let registry = self.world.checkpoints();
        let is_kept = |id: ComponentId| registry.kept.iter().any(|kept| kept.component_id(world) == Some(id));
        let mut ids: Vec<ComponentId> = Vec::new();
        // Sets of components that hold nobody now held somebody before.
        world.archetypes().iter().for_each(|archetype| ids.extend(archetype.components()));
        ids.sort_unstable();
        ids.dedup();
        let unkept = ids.into_iter().filter(|id| !is_kept(*id));
        let named = unkept.filter_map(|id| Some((id, world.components().get_name(id)?.to_string())));
        let is_known = |name: &str| {
            registry.transient.contains(&name) || engine_types::OF_EACH_WORLD.iter().any(|known| known() == name)
        };
        let is_resource = world.components().component_id::<IsResource>();
        let game = named.filter(|(id, name)| Some(*id) != is_resource && !is_known(name));
        let mut names: Vec<String> = game.map(|(_, name)| name).collect();
        names.sort();
        names
    }
}

/// Promise: a world that is loaded from a checkpoint goes on as the one that was saved, and that one as if nobody had
/// saved it.
///
/// `make` makes a world and always the same one; `play` says what players do before a tick, by its number alone. Three
/// worlds: one is left alone; one is saved after `saved_at` ticks; one is loaded from that. In each of `ticks` further ticks
/// all have one state hash and tell clients the same, and in the end one checkpoint. Players stay.
///
/// # Panics
/// If they part, with the tick; if a checkpoint cannot be taken or loaded; if the world has what its kind forgets.
pub fn goes_on_alike_after_a_load(
    make: impl Fn() -> TestWorld,
    saved_at: u32,
    ticks: u32,
    play: impl Fn(&mut TestWorld, u32),
) {
    let run = |world: &mut TestWorld, ticks: u32| {
        for _ in 0..ticks {
            play(world, world.ticks_done());
            world.tick();
        }
    };
    let [mut alone, mut saved] = [(); 2].map(|()| make());
    run(&mut alone, saved_at);
    run(&mut saved, saved_at);
    assert_eq!(saved.forgotten(), Vec::<String>::new(), "the world has what its kind forgets");
    let bytes = saved.checkpoint(PlayerEntities::Stay).expect("a checkpoint");
    let mut loaded = make();
    loaded.load(&bytes, PlayerEntities::Stay).expect("it is loaded");
    // What is around a world in a test.
    loaded.numbers.clone_from(&saved.numbers);
    for item in &saved.mail.items {
        if let MailItem::Message(message) = item {
            loaded.mail.push(MailItem::Message(message.clone()));
        }
    }
    loaded.tuned = saved.tuned.clone();
    loaded.world.set_tuned(&saved.tuned);
    same_bytes(&loaded.checkpoint(PlayerEntities::Stay).expect("a checkpoint"), &bytes, "just loaded");
    assert_eq!(loaded.state_hash(), saved.state_hash(), "just loaded");
    for _ in 0..ticks {
        for world in [&mut alone, &mut saved, &mut loaded] {
            run(world, 1);
        }
        let tick = saved.ticks_done();
        let expect = alone.state_hash();
        assert_eq!(saved.state_hash(), expect, "tick {tick}: a world that was saved is another one after it");
        assert_eq!(loaded.state_hash(), expect, "tick {tick}: the loaded world goes another way");
        let told = |world: &TestWorld| -> Vec<(ClientKey, Vec<u8>)> {
            let told = world.world.told().into_iter().flat_map(super::Told::iter);
            told.map(|(client, message)| (client, message.to_vec())).collect()
        };
        assert_eq!(told(&loaded), told(&alone), "tick {tick}: the loaded world tells its clients something else");
    }
    let expect = alone.checkpoint(PlayerEntities::Stay).expect("a checkpoint");
    same_bytes(&saved.checkpoint(PlayerEntities::Stay).expect("a checkpoint"), &expect, "saved on the way");
    same_bytes(&loaded.checkpoint(PlayerEntities::Stay).expect("a checkpoint"), &expect, "loaded on the way");
    assert_eq!(loaded.forgotten(), Vec::<String>::new(), "the world has what its kind forgets");
}

fn same_bytes(got: &[u8], expect: &[u8], when: &str) {
    // The heading is a checksum of the rest.
    let parts_at = got.iter().zip(expect).skip(24).position(|(got, expect)| got != expect);
    let (lengths, parts_at) = ((got.len(), expect.len()), parts_at.map(|at| at + 24));
    assert!(got == expect, "{when}: checkpoints of {lengths:?} bytes part at {parts_at:?}");
}
