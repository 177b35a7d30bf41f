//! The promise: a game's server side needs one dependency, `throng`. All derives and macros that it uses, Bevy's and ours,
//! work with nothing else in its Cargo.toml, and the preludes can be imported together.

/// All names of both preludes: one that stands for two things is refused here.
#[deny(ambiguous_glob_reexports)]
pub mod both {
    pub use throng::bevy_ecs::prelude::*;
    pub use throng::prelude::*;
}

pub mod game {
    #[allow(unused_imports, reason = "as a game would that is used to Bevy")]
    use throng::bevy_ecs::prelude::*;
    use throng::prelude::*;

    throng::profiler::log_category!(ORCHARD = "orchard");

    throng::counters! {
        /// What became of apples.
        pub struct Apples {
            Sum picked: "orchard.apples_picked", "apples", "Apples picked.", "Good.";
        }
    }

    #[derive(Component, Clone, Copy, Debug, PartialEq, Replicate)]
    pub struct Position {
        #[replicate(min = -512.0, max = 512.0, step = 0.5)]
        pub x: f32,
        #[replicate(min = -8, max = 8)]
        pub floor: i8,
    }

    impl Placed for Position {
        fn place(&self) -> [f32; 2] {
            [self.x, 0.0]
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, Default, Pack, Replicate)]
    pub enum Sort {
        #[default]
        Sweet,
        Sour,
    }

    #[derive(Component, Clone, Debug, PartialEq, Replicate)]
    #[require(Sack)]
    pub struct Picker {
        pub name: Text<12>,
        pub takes: Option<Sort>,
        pub friends: ArrayVec<EntityLink, 4>,
    }

    /// What travels with a picker.
    #[derive(Component, Clone, Debug, Default, PartialEq, Pack)]
    #[pack(name = "orchard.sack")]
    pub struct Sack {
        pub sorts: List<Sort, 8>,
        #[pack(max = 500)]
        pub apples: u16,
    }

    #[derive(Clone, Debug, PartialEq, Replicate)]
    #[replicate(name = "orchard.fell")]
    pub struct Fell {
        pub sort: Sort,
    }

    impl ReplicatedEvent for Fell {
        const RELIABLE: bool = false;
        const RANGE_M: Option<f32> = Some(30.0);
    }

    #[derive(Resource, Default)]
    pub struct Season {
        pub counted: Apples,
        pub winds: u32,
    }

    /// As many worlds have one each.
    #[derive(Default)]
    pub struct Ladder(pub u32);

    throng::replication::table_resource!(Ladder);

    #[derive(Event)]
    pub struct Wind;

    #[derive(Message)]
    pub struct Bell;

    #[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
    pub struct Work;

    #[scoped("orchard.welcome")]
    fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
        for arrival in &arrivals.0 {
            let picker = Picker { name: Text::default(), takes: Some(Sort::Sour), friends: ArrayVec::new() };
            let place = (Position { x: 0.0, floor: -2 }, Team(1), Weight(2.0));
            let player = commands.spawn((Replicated::default(), picker, place)).id();
            outbox.set_player(arrival.client, player);
            throng::profiler::log_debug!(ORCHARD, "a picker came");
        }
    }

    fn pick(
        mut sacks: Query<&mut Sack, With<Picker>>,
        mut season: ResMut<Season>,
        mut ladder: ResMut<Ladder>,
        mut rng: ResMut<WorldRng>,
        mut events: ResMut<Events>,
        mut commands: Commands,
    ) {
        throng::profiler::scope!("orchard.pick");
        ladder.0 += 1;
        for mut sack in &mut sacks {
            sack.apples += rng.0.random_range(1..=3);
            season.counted.picked += u64::from(sack.apples);
            count!("apples");
            gauge!("sacks", 1);
            events.send(&Fell { sort: Sort::Sweet }, Audience::Everyone, "orchard.wind");
            commands.trigger(Wind);
        }
    }

    pub struct Orchard;

    impl WorldPlugin for Orchard {
        fn build(&self, world: &mut WorldBuilder) {
            world.init_resource::<Season>().init_resource::<Ladder>();
            world.add_observer(|_: On<Wind>, mut season: ResMut<Season>| season.winds += 1);
            world.add_systems(Update, (welcome, pick).chain().in_set(Work));
            world.placed_by::<Position>();
        }
    }

    impl WorldKind for Orchard {
        fn name(&self) -> &str {
            "orchard"
        }

        fn tick_rate(&self) -> Hertz {
            Hertz(20)
        }

        fn protocol(&self) -> Protocol {
            Protocol::new().component::<Position>().component::<Picker>().event::<Fell>()
        }

        fn build(&self, world: &mut WorldBuilder) {
            world.add_plugins(Orchard);
        }
    }
}

#[cfg(test)]
mod tests {
    use throng::{prelude::*, world::testing::TestWorld};

    use super::game::*;

    #[test]
    fn a_world_runs_whose_game_has_one_dependency() {
        let mut world = TestWorld::new(Orchard, &Orchard.protocol().schema(), 1);
        world.arrive(ClientKey(7));
        world.ticks(3);
        let mut pickers = world.ecs_mut().query::<(&Picker, &Sack)>();
        let (picker, sack) = pickers.single(world.ecs()).unwrap();
        assert!(picker.friends.is_empty() && sack.apples > 0);
        let season = world.ecs().resource::<Season>();
        assert!(season.winds > 0 && season.counted.picked > 0);
    }

    #[test]
    fn what_is_packed_comes_back() {
        let sack = Sack { sorts: List::try_from(vec![Sort::Sour]).unwrap(), apples: 500 };
        let mut bytes = Vec::new();
        throng::pack::envelope::write(&sack, &mut bytes).unwrap();
        assert_eq!(throng::pack::envelope::read::<Sack>(&bytes), Ok(sack));
        assert_eq!(Sack::schema().name, "orchard.sack");
    }
}
