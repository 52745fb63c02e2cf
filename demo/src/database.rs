//! The database: one SQLite connection on its own thread, with a bounded queue.
//!
//! SQLite blocks, and handlers must not. One connection suffices: SQLite writes one transaction at a time, and an
//! in-memory database belongs to the connection that opened it.

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rusqlite::{Connection, Row};
use tokio::sync::oneshot;

use crate::settings::DatabaseUrl;

/// Maximum number of queued queries. Further ones fail with [`Error::Busy`].
pub(crate) const QUERIES_MAX: usize = 1024;
/// Number of rows inserted into an empty table `world`.
const WORLD_ROWS: u32 = 10_000;
/// Largest value of `random_number`.
const NUMBER_MAX: u32 = 10_000;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS world (id INTEGER PRIMARY KEY, number INTEGER NOT NULL)";
const FILL: &str = "WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ?1) \
                    INSERT INTO world SELECT id, abs(random()) % ?2 + 1 FROM ids";
const FORTUNES_SCHEMA: &str =
    "CREATE TABLE IF NOT EXISTS fortune (id INTEGER PRIMARY KEY, message TEXT NOT NULL)";
const FORTUNES: &str = "SELECT id, message FROM fortune";
const FORTUNE: &str = "INSERT INTO fortune (message) VALUES (?1)";
const UPDATE: &str = "UPDATE world SET number = abs(random()) % ?2 + 1 WHERE id = ?1 RETURNING id, number";
const RANDOM_ROW: &str = "SELECT id, number FROM world WHERE id = (SELECT abs(random()) % ?1 + 1)";

/// Rows inserted into an empty table `fortune`: TechEmpower's.
const FORTUNE_ROWS: &str = include_str!("fortunes.txt");

type Query = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle to the database. The connection is closed when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Database {
    queries: SyncSender<Query>,
}

/// A row of the table `world`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) id: u32,
    pub(crate) number: u32,
}

/// A row of the table `fortune`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fortune {
    pub(crate) id: u32,
    pub(crate) message: String,
}

/// An error of a query.
#[derive(Debug)]
pub(crate) enum Error {
    /// The queue holds [`QUERIES_MAX`] queries.
    Busy,
    /// The database's thread has ended.
    Ended,
    Sqlite(rusqlite::Error),
    Thread(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => write!(f, "the queue of {QUERIES_MAX} queries is full"),
            Self::Ended => f.write_str("the database's thread has ended"),
            Self::Sqlite(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "can't start its thread: {error}"),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Database {
    /// Opens the database, fills it if it is empty, and starts its thread.
    pub(crate) fn open(url: &DatabaseUrl) -> Result<Self, Error> {
        let connection = match url {
            DatabaseUrl::Memory => Connection::open_in_memory()?,
            DatabaseUrl::File(path) => Connection::open(path)?,
        };
        prepare(&connection)?;
        let (sender, queries) = sync_channel(QUERIES_MAX);
        let thread = std::thread::Builder::new().name("database".to_owned());
        thread.spawn(move || run(connection, &queries)).map_err(Error::Thread)?;
        Ok(Self { queries: sender })
    }

    /// Returns a random row.
    pub(crate) async fn random_row(&self) -> Result<World, Error> {
        self.run(|connection| random_row(connection)).await
    }

    /// Returns random rows, each by a query of its own.
    pub(crate) async fn random_rows(&self, rows: u32) -> Result<Vec<World>, Error> {
        self.run(move |connection| (0..rows).map(|_| random_row(connection)).collect()).await
    }

    /// Reads random rows, gives each a new random number in one transaction, and returns them.
    pub(crate) async fn update_rows(&self, rows: u32) -> Result<Vec<World>, Error> {
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            let update = |_| {
                let row = random_row(&transaction)?;
                transaction.prepare_cached(UPDATE)?.query_row([row.id, NUMBER_MAX], world)
            };
            let updated = (0..rows).map(update).collect::<rusqlite::Result<Vec<World>>>()?;
            transaction.commit()?;
            Ok(updated)
        })
        .await
    }

    /// Returns all fortunes.
    pub(crate) async fn fortunes(&self) -> Result<Vec<Fortune>, Error> {
        self.run(|connection| {
            let mut statement = connection.prepare_cached(FORTUNES)?;
            let rows =
                statement.query_map([], |row| Ok(Fortune { id: row.get(0)?, message: row.get(1)? }))?;
            rows.collect()
        })
        .await
    }

    /// Runs `work` on the database's thread. It runs to its end even if the future is dropped.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, result) = oneshot::channel();
        let query = Box::new(move |connection: &mut Connection| drop(sender.send(work(connection))));
        self.queries.try_send(query).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy,
            TrySendError::Disconnected(_) => Error::Ended,
        })?;
        Ok(result.await.map_err(|_| Error::Ended)??)
    }
}

fn random_row(connection: &Connection) -> rusqlite::Result<World> {
    connection.prepare_cached(RANDOM_ROW)?.query_row([WORLD_ROWS], world)
}

fn world(row: &Row<'_>) -> rusqlite::Result<World> {
    Ok(World { id: row.get(0)?, number: row.get(1)? })
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute(SCHEMA, [])?;
    let rows: u32 = connection.query_row("SELECT count(*) FROM world", [], |row| row.get(0))?;
    if rows == 0 {
        connection.execute(FILL, [WORLD_ROWS, NUMBER_MAX])?;
    }
    connection.execute(FORTUNES_SCHEMA, [])?;
    let fortunes: u32 = connection.query_row("SELECT count(*) FROM fortune", [], |row| row.get(0))?;
    if fortunes == 0 {
        FORTUNE_ROWS.lines().try_for_each(|line| connection.execute(FORTUNE, [line]).map(drop))?;
    }
    Ok(())
}

/// Runs queries until all handles are dropped.
fn run(mut connection: Connection, queries: &Receiver<Query>) {
    for query in queries {
        query(&mut connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn returns_random_rows() {
        let database = Database::open(&DatabaseUrl::Memory).unwrap();
        let rows: Vec<World> = (0..100).map(|_| wait(database.random_row()).unwrap()).collect();
        assert!(rows.iter().all(|row| (1..=WORLD_ROWS).contains(&row.id)));
        assert!(rows.iter().all(|row| (1..=NUMBER_MAX).contains(&row.number)));
        assert!(rows.iter().any(|row| *row != rows[0]), "the same row a hundred times");
    }

    /// Blocks the database's thread and fills the queue: further queries are rejected.
    #[test]
    fn rejects_queries_while_the_queue_is_full() {
        let database = Database::open(&DatabaseUrl::Memory).unwrap();
        let (entered, inside) = sync_channel(1);
        let (release, released) = sync_channel::<()>(1);
        let hold = move |_: &mut Connection| {
            entered.send(()).unwrap();
            released.recv().unwrap_or_default();
        };
        database.queries.try_send(Box::new(hold)).unwrap();
        inside.recv().unwrap();
        for _ in 0..QUERIES_MAX {
            database.queries.try_send(Box::new(|_: &mut Connection| ())).unwrap();
        }
        assert!(matches!(wait(database.random_row()), Err(Error::Busy)));
        release.send(()).unwrap();
        // Rejected until the thread has made room in the queue.
        let row = std::iter::repeat_with(|| wait(database.random_row()))
            .find(|row| !matches!(row, Err(Error::Busy)));
        assert!(row.unwrap().is_ok());
    }

    #[test]
    fn reports_a_database_that_cannot_be_opened() {
        let url = DatabaseUrl::File("no/such/folder/demo.db".into());
        let error = Database::open(&url).err().unwrap();
        assert!(error.to_string().contains("unable to open"), "{error}");
    }
}
