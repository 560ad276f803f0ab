// pgx: binary formats, its statement cache, batches (pipelines), COPY in binary, pools, cancel, LISTEN; and
// the same through database/sql.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
	_ "github.com/jackc/pgx/v4/stdlib"
)

const columns = "pid, name, id, mode, uid, size, mtime, fid, class, attr"
const insert = "INSERT INTO meta (" + columns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
const selectOne = "SELECT " + columns + " FROM meta WHERE pid = $1 AND name = $2"
const names = "SELECT name FROM meta WHERE pid = $1 AND name > 'f' AND name < 'g' ORDER BY name"

var directory = int64(100000000000000) + int64(os.Getpid())*1000000 + 700
var when = time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)
var ctx = context.Background()

func fileName(i int) string { return fmt.Sprintf("f%04d", i) }

func row(i int) []interface{} {
	return []interface{}{directory, fileName(i), directory + 1 + int64(i), int32(0400 + i%8), int64(i), int64(10 * i),
		when.Add(time.Duration(i) * time.Second), int64(-i), int16(i % 100), []byte{0, 255, byte(i)}}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func eq(got, want interface{}) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		panic(fmt.Sprintf("got %v, want %v", got, want))
	}
}

func refused(code string, err error) *pgconn.PgError {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		panic(fmt.Sprintf("want %s, got %v", code, err))
	}
	eq(e.Code, code)
	return e
}

func count(c *pgx.Conn) (n int) {
	must(c.QueryRow(ctx, "SELECT count(*) FROM meta WHERE pid = $1 AND name <> '_attr_'", directory).Scan(&n))
	return n
}

func fill(c *pgx.Conn, n int) {
	b := &pgx.Batch{}
	for i := 0; i < n; i++ {
		b.Queue(insert, row(i)...)
	}
	r := c.SendBatch(ctx, b)
	for i := 0; i < n; i++ {
		tag, err := r.Exec()
		must(err)
		eq(tag, "INSERT 0 1")
	}
	must(r.Close())
}

func fetch(q interface {
	QueryRow(context.Context, string, ...interface{}) pgx.Row
}, i int) []interface{} {
	var pid, id, uid, size, fid int64
	var name string
	var mode int32
	var class int16
	var mtime time.Time
	var attr []byte
	must(q.QueryRow(ctx, selectOne, directory, fileName(i)).Scan(&pid, &name, &id, &mode, &uid, &size, &mtime, &fid, &class, &attr))
	return []interface{}{pid, name, id, mode, uid, size, mtime.UTC(), fid, class, attr}
}

func list(rows pgx.Rows, err error) (out []string) {
	must(err)
	for rows.Next() {
		var s string
		must(rows.Scan(&s))
		out = append(out, s)
	}
	must(rows.Err())
	return out
}

type step struct {
	name string
	run  func(c *pgx.Conn)
}

var steps = []step{
	{"connect", func(c *pgx.Conn) {
		eq(c.PgConn().ParameterStatus("server_version")[:3], "15.")
		eq(c.PgConn().ParameterStatus("standard_conforming_strings"), "on")
	}},
	{"wrong_password", func(c *pgx.Conn) {
		if os.Getenv("PGPASSWORD") == "" {
			return
		}
		config, err := pgx.ParseConfig("")
		must(err)
		config.Password = "wrong"
		_, err = pgx.ConnectConfig(ctx, config)
		refused("28P01", err)
	}},
	{"types", func(c *pgx.Conn) {
		fill(c, 3)
		eq(fetch(c, 2), row(2))
		var none *int64
		must(c.QueryRow(ctx, "SELECT rdev FROM meta WHERE pid = $1 AND name = $2", directory, fileName(1)).Scan(&none))
		if none != nil {
			panic("not NULL")
		}
	}},
	{"prepared", func(c *pgx.Conn) {
		fill(c, 50)
		d, err := c.Prepare(ctx, "one", selectOne)
		must(err)
		eq(d.ParamOIDs, []uint32{20, 25})
		for i := 0; i < 50; i++ {
			var pid int64
			must(c.QueryRow(ctx, "one", directory, fileName(i)).Scan(&pid, nil, nil, nil, nil, nil, nil, nil, nil, nil))
		}
		must(c.Deallocate(ctx, "one"))
	}},
	{"simple_protocol", func(c *pgx.Conn) {
		fill(c, 2)
		var size int64
		must(c.QueryRow(ctx, "SELECT size FROM meta WHERE pid = $1 AND name = $2", pgx.QuerySimpleProtocol(true), directory, "f0001").Scan(&size))
		eq(size, 10)
	}},
	{"batch_is_one_transaction", func(c *pgx.Conn) {
		b := &pgx.Batch{}
		b.Queue(insert, row(1)...)
		b.Queue(insert, row(2)...)
		b.Queue(insert, row(1)...)
		b.Queue("SELECT 1")
		refused("23505", c.SendBatch(ctx, b).Close())
		eq(count(c), 0)
	}},
	{"error_in_transaction", func(c *pgx.Conn) {
		tx, err := c.Begin(ctx)
		must(err)
		_, err = tx.Exec(ctx, insert, row(1)...)
		must(err)
		_, err = tx.Exec(ctx, insert, row(1)...)
		eq(refused("23505", err).ConstraintName, "meta_pkey")
		_, err = tx.Exec(ctx, "SELECT 1")
		refused("25P02", err)
		must(tx.Rollback(ctx))
		eq(count(c), 0)
	}},
	{"savepoint", func(c *pgx.Conn) {
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		must(err)
		_, err = tx.Exec(ctx, insert, row(1)...)
		must(err)
		inner, err := tx.Begin(ctx)
		must(err)
		_, err = inner.Exec(ctx, insert, row(1)...)
		refused("23505", err)
		must(inner.Rollback(ctx))
		must(tx.Commit(ctx))
		eq(count(c), 1)
		tx, err = c.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		must(err)
		_, err = tx.Exec(ctx, insert, row(2)...)
		refused("25006", err)
		must(tx.Rollback(ctx))
	}},
	{"arrays", func(c *pgx.Conn) {
		fill(c, 3)
		eq(list(c.Query(ctx, "SELECT name FROM meta WHERE pid = $1 AND name = ANY($2) ORDER BY name", directory, []string{"f0001", "f0002", "x"})),
			[]string{"f0001", "f0002"})
	}},
	{"copy", func(c *pgx.Conn) {
		rows := [][]interface{}{}
		for i := 0; i < 2000; i++ {
			rows = append(rows, []interface{}{directory, fmt.Sprintf("c%d", i), int64(i), []byte{byte(i)}})
		}
		n, err := c.CopyFrom(ctx, pgx.Identifier{"meta"}, []string{"pid", "name", "fid", "attr"}, pgx.CopyFromRows(rows))
		must(err)
		eq(n, 2000)
		_, err = c.CopyFrom(ctx, pgx.Identifier{"meta"}, []string{"pid", "name", "fid", "attr"}, pgx.CopyFromRows(rows[:1]))
		refused("23505", err)
		var out strings.Builder
		_, err = c.PgConn().CopyTo(ctx, &out, fmt.Sprintf("COPY (SELECT name FROM meta WHERE pid = %d AND name LIKE 'c%%') TO STDOUT", directory))
		must(err)
		eq(strings.Count(out.String(), "\n"), 2000)
	}},
	{"cancel", func(c *pgx.Conn) {
		go func() {
			time.Sleep(300 * time.Millisecond)
			must(c.PgConn().CancelRequest(ctx))
		}()
		_, err := c.Exec(ctx, "SELECT pg_sleep(60)")
		refused("57014", err)
		eq(count(c), 0)
	}},
	{"notify", func(c *pgx.Conn) {
		_, err := c.Exec(ctx, "LISTEN pgx")
		must(err)
		other, err := pgx.Connect(ctx, "")
		must(err)
		_, err = other.Exec(ctx, "SELECT pg_notify('pgx', $1)", "text")
		must(err)
		must(other.Close(ctx))
		n, err := c.WaitForNotification(ctx)
		must(err)
		eq(n.Payload, "text")
	}},
	{"pool", func(c *pgx.Conn) {
		pool, err := pgxpool.Connect(ctx, "pool_max_conns=4")
		must(err)
		done := make(chan interface{})
		for i := 0; i < 40; i++ {
			go func(i int) {
				defer func() { done <- recover() }()
				_, err := pool.Exec(ctx, insert, row(i)...)
				must(err)
				eq(fetch(pool, i), row(i))
			}(i)
		}
		for i := 0; i < 40; i++ {
			if bad := <-done; bad != nil {
				panic(bad)
			}
		}
		pool.Close()
	}},
	{"database_sql", func(c *pgx.Conn) {
		fill(c, 20)
		db, err := sql.Open("pgx", "")
		must(err)
		defer db.Close()
		s, err := db.Prepare(names)
		must(err)
		rows, err := s.Query(directory)
		must(err)
		n := 0
		for rows.Next() {
			n++
		}
		must(rows.Err())
		eq(n, 20)
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		must(err)
		_, err = tx.Exec("DELETE FROM meta WHERE pid = $1 AND name = $2", directory, "f0001")
		must(err)
		must(tx.Rollback())
		eq(count(c), 20)
	}},
}

func run(c *pgx.Conn, s step) (good bool) {
	defer func() {
		if bad := recover(); bad != nil {
			fmt.Printf("FAIL pgx %s %s\n", s.name, strings.ReplaceAll(fmt.Sprint(bad), "\n", " "))
			good = false
		}
	}()
	s.run(c)
	fmt.Printf("ok pgx %s\n", s.name)
	return true
}

func main() {
	c, err := pgx.Connect(ctx, "")
	must(err)
	name := fmt.Sprintf("client_pgx_%d", directory)
	_, err = c.Exec(ctx, "INSERT INTO meta (pid, name, id, type) VALUES (0, $1, $2, 'd')", name, directory)
	must(err)
	good := true
	for _, s := range steps {
		good = run(c, s) && good
		if c.PgConn().TxStatus() != 'I' {
			_, err = c.Exec(ctx, "ROLLBACK")
			must(err)
		}
		_, err = c.Exec(ctx, "DELETE FROM meta WHERE pid = $1 AND name >= 'a' AND name < 'z'", directory)
		must(err)
	}
	_, err = c.Exec(ctx, "DELETE FROM meta WHERE pid = 0 AND name = $1", name)
	must(err)
	must(c.Close(ctx))
	if !good {
		os.Exit(1)
	}
}
