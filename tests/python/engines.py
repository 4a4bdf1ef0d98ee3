"""The engines that tests run potluck beside: PostgreSQL (a server of our own), DuckDB and Spark with real executors. An
engine that is not there fails; nothing is skipped."""

import contextlib
import glob
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile

import duckdb
import psycopg
import pyarrow
import pyarrow.csv
from pyspark.sql import SparkSession


def quote(name):
    return '"' + name.replace('"', '""') + '"'


class Postgres:
    """A server of our own, started for the tests."""

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        assert programs, "PostgreSQL is not installed: apt-get install postgresql"
        self.programs, self.folder = programs[-1], folder
        # The server refuses to run as root.
        self.prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self.prefix:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        self.run("initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_wal_size=4GB -c work_mem=64MB"
        self.run("pg_ctl", "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "start")
        self.connection = psycopg.connect(host=str(folder), user="postgres", autocommit=True)

    def run(self, program, *arguments):
        command = [*self.prefix, os.path.join(self.programs, program), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def stop(self):
        self.connection.close()
        self.run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")

    def load(self, table, name, path):
        del path
        kinds = {"float": "real", "double": "double precision", "int16": "smallint", "int32": "integer"}
        kinds |= {"int64": "bigint", "bool": "boolean", "date32[day]": "date", "string": "text"}

        def kind(field):
            text = str(field.type)
            return text.replace("decimal128", "numeric") if text.startswith("decimal") else kinds[text]

        with self.connection.cursor() as cursor:
            quoted = [f'{quote(field.name)} {kind(field)}' for field in table.schema]
            cursor.execute("CREATE SCHEMA IF NOT EXISTS clinic")
            cursor.execute(f"DROP TABLE IF EXISTS clinic.{quote(name)} CASCADE")
            cursor.execute(f"CREATE TABLE clinic.{quote(name)} ({', '.join(quoted)})")
            sink = pyarrow.BufferOutputStream()
            pyarrow.csv.write_csv(table, sink)
            with cursor.copy(f"COPY clinic.{quote(name)} FROM STDIN CSV HEADER") as copy:
                copy.write(sink.getvalue().to_pybytes())
            cursor.execute(f"ANALYZE clinic.{quote(name)}")
        return f'clinic.{quote(name)}'

    def query(self, text):
        with self.connection.cursor() as cursor:
            return cursor.execute(text).fetchall()


class DuckDb:
    def __init__(self):
        self.connection = duckdb.connect()
        self.connection.execute("CREATE SCHEMA clinic")

    def load(self, table, name, path):
        del table
        self.connection.execute(
            f"CREATE OR REPLACE TABLE clinic.{quote(name)} AS SELECT * FROM read_parquet('{path}')"
        )
        return f"clinic.{quote(name)}"

    def query(self, text):
        return self.connection.execute(text).fetchall()


class Spark:
    def __init__(self, folder):
        # Executors run the Python that has the package, if this one does.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "4")
        builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        builder = builder.config("spark.local.dir", str(folder / "local")).config("spark.executor.memory", "1g")
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def load(self, table, name, path):
        del table
        self.session.read.parquet(str(path)).createOrReplaceTempView(f"`{name}`")
        return quote(name)

    def query(self, text, ansi=True):
        self.session.conf.set("spark.sql.ansi.enabled", "true" if ansi else "false")
        return [tuple(row) for row in self.session.sql(text).collect()]


@contextlib.contextmanager
def started(folder):
    """All of them by the names of their dialects, until they are stopped."""
    # A socket's name must be short, and the server's user must get there.
    home = tempfile.mkdtemp(prefix="potluck-")
    os.chmod(home, 0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        postgres = Postgres(pathlib.Path(home))
        stack.callback(postgres.stop)
        spark = Spark(folder)
        stack.callback(spark.session.stop)
        yield {"postgres": postgres, "duckdb": DuckDb(), "spark": spark}
