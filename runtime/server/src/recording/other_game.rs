//! Other game: a recording is of the game and schema that are to read it, or is refused with what would read it.

use throng_replication::Schema;

use super::About;

/// A recording is not of this game, or of another schema of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OtherGame {
    #[error("the recording is of {recorded}, and this is {here}; name it with --game {recorded}")]
    Name { recorded: String, here: String },
    #[error(
        "the recording's schema is {recorded:016x}, and that of this build of {game} is {here:016x}: inputs would be read as \
         others; replay it with the build that wrote it, {build}"
    )]
    Schema { game: String, recorded: u64, here: u64, build: String },
}

impl About {
    /// # Errors
    /// If another game was recorded, or inputs of another schema.
    pub fn check_game(&self, game: &str, schema: &Schema) -> Result<(), OtherGame> {
        if self.game != game {
            return Err(OtherGame::Name { recorded: self.game.clone(), here: game.to_owned() });
        }
        if self.schema != schema.hash() {
            let build = format!("{} ({})", self.version, self.commit);
            let (recorded, here) = (self.schema, schema.hash());
            return Err(OtherGame::Schema { game: game.to_owned(), recorded, here, build });
        }
        Ok(())
    }
}
