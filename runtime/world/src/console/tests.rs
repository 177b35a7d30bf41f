//! Arguments: what each takes, and how it says what it does not. Commands: they run in the world, with typed values.

use throng_net::protocol::ClientId;

use super::*;
use crate::ids::WorldId;

#[track_caller]
fn check<A: Arguments<Values: fmt::Debug + PartialEq>>(arguments: A, line: &str, expect: Result<A::Values, &str>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(arguments.read(&words).as_ref().map_err(String::as_str), expect.as_ref().map_err(|error| *error));
}

#[test]
fn a_wrong_argument_is_named_with_what_it_may_be() {
    let count = || integer("count", 1..=100);
    check(count(), "7", Ok(7));
    check(count(), "0", Err("count: 0 is too low; it may be 1 to 100"));
    check(count(), "101", Err("count: 101 is too high; it may be 1 to 100"));
    check(count(), "7.5", Err("count: 7.5 is not a whole number; it may be 1 to 100"));
    check(count(), "", Err("count is missing: a whole number, 1 to 100"));
    check(count(), "7 8", Err("it takes no `8` after count"));
    let x_m = || number("x_m", -50.0..=50.5);
    check(x_m(), "-12.5", Ok(-12.5));
    check(x_m(), "51", Err("x_m: 51 is too high; it may be -50 to 50.5"));
    check(x_m(), "nan", Err("x_m: nan is not a number; it may be -50 to 50.5"));
    check(x_m(), "far", Err("x_m: far is not a number; it may be -50 to 50.5"));
    check(text("name", 4), "änna", Ok("änna".to_owned()));
    check(text("name", 4), "berta", Err("name: it has 5 characters; it may have up to 4"));
    check(one_of("what", &["all", "some"]), "some", Ok("some"));
    check(one_of("what", &["all", "some"]), "none", Err("what: there is no none; it may be all, some"));
    check(world("world"), "7.2", Ok(WorldId::new(7, 2)));
    check(world("world"), "7", Ok(WorldId::new(7, 0)));
    let hub = "world: hub is not a world; `world.list` shows what there is, such as 7 or 7.2";
    check(world("world"), "hub", Err(hub));
    check(player("player"), "1007", Ok(ClientId(1007)));
    let anna = "player: anna is not a player; `player.list` shows who is there, by a whole number";
    check(player("player"), "anna", Err(anna));
    check((), "", Ok(()));
    check((), "now", Err("it takes no `now`, only --json"));
}

#[test]
fn several_are_read_in_their_order_and_those_that_need_not_be_given_come_last() {
    let three = || (world("world"), integer("count", 1..=9), optional(text("name", 8)));
    check(three(), "3 4 anna", Ok((WorldId::new(3, 0), 4, Some("anna".to_owned()))));
    check(three(), "3 4", Ok((WorldId::new(3, 0), 4, None)));
    check(three(), "3", Err("count is missing: a whole number, 1 to 9"));
    check(three(), "3 4 anna berta", Err("it takes no `berta` after world count name"));
    let about = three().about();
    assert_eq!((about[2].name, about[2].is_optional), ("name", true));
}

#[test]
#[should_panic(expected = "an argument that must be given after one that need not be")]
fn an_order_that_nobody_could_type_is_a_bug() {
    let arguments = (optional(integer("count", 1..=9)), text("name", 8));
    let _ = WorldConsole::new().observe("a", "", arguments, |_: In<(Option<i64>, String)>| Err(String::new()));
}

#[derive(Resource, Default)]
struct Wolves(i64);

fn release(In(count): In<i64>, mut wolves: ResMut<Wolves>, mut commands: Commands) -> CommandResult {
    wolves.0 += count;
    commands.spawn_empty();
    let mut table = TextTable::new([Column::integer("wolves", "wolves")]);
    table.row(&[Cell::Integer(wolves.0)]);
    Ok(table)
}

#[test]
fn a_command_is_a_system_that_is_run_once_with_the_values() {
    let console = WorldConsole::new().operate("wolves.release", "", integer("count", 1..=100), release);
    let [command] = console.commands() else { panic!("one was added") };
    assert_eq!(command.prepare(&["0"]).err().as_deref(), Some("count: 0 is too low; it may be 1 to 100"));
    let mut world = World::new();
    let run = |world: &mut World| command.prepare(&["7"]).unwrap()(world).map(|mut table| table.text().to_owned());
    assert!(run(&mut world).unwrap_err().starts_with("its system could not run"), "there is no such resource");
    world.init_resource::<Wolves>();
    let entities = world.entities().count_spawned();
    assert_eq!(run(&mut world).as_deref(), Ok("wolves\n     7\n"));
    assert_eq!(run(&mut world).as_deref(), Ok("wolves\n    14\n"));
    assert_eq!(world.entities().count_spawned(), entities + 2, "what it asked Bevy for is done");
}

#[test]
#[should_panic(expected = "two commands are called `wolves.release`")]
fn two_commands_of_one_name_are_a_bug() {
    let one = || WorldConsole::new().operate("wolves.release", "", integer("count", 1..=100), release);
    let _ = one().operate("wolves.release", "", integer("count", 1..=100), release);
}
