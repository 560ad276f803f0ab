// postgres.js (npm package postgres): its type query on connecting, pipelining, cursors, COPY, cancel, LISTEN.
'use strict';
const fs = require('fs');
const assert = require('assert');
const { pipeline } = require('stream/promises');
const { Readable } = require('stream');
const postgres = require('postgres');

const secure = (process.env.PGSSLMODE || 'disable') !== 'disable';
const options = (more) => ({
  ssl: secure ? { ca: fs.readFileSync(process.env.PGSSLROOTCERT), servername: 'localhost' } : false,
  onnotice: () => {}, max: 4, ...more,
});
const directory = String(10n ** 14n + BigInt(process.pid) * 10n ** 6n + 500n);
const name = 'client_postgresjs_' + directory;
const when = new Date('2024-05-06T07:08:09.123Z');
const row = (i) => ({
  pid: directory, name: 'f' + String(i).padStart(4, '0'), id: String(BigInt(directory) + 1n + BigInt(i)), mode: 0o400 + (i % 8),
  uid: String(i), mtime: when, fid: String(-i), class: i % 100, attr: Buffer.from([0, 255, i % 256]),
});
const columns = Object.keys(row(0));
let failed = 0;

async function refused(code, promise) {
  try {
    await promise;
  } catch (e) {
    assert.strictEqual(e.code, code, e.message);
    return e;
  }
  throw new Error('not refused with ' + code);
}

async function count(sql) {
  const [r] = await sql`SELECT count(*) FROM meta WHERE pid = ${directory} AND name <> '_attr_'`;
  return Number(r.count);
}

const fill = (sql, n) => sql`INSERT INTO meta ${sql([...Array(n).keys()].map(row), ...columns)}`;

const steps = {
  async connect(sql) {
    assert.strictEqual((await sql`SELECT 1 AS one`)[0].one, 1);
    assert.match(sql.parameters?.server_version ?? (await sql`SHOW server_version`)[0].server_version, /^15\./);
  },
  async wrong_password() {
    if (!process.env.PGPASSWORD) return;
    const other = postgres(options({ password: 'wrong', max: 1 }));
    await refused('28P01', other`SELECT 1`);
    await other.end();
  },
  async types(sql) {
    assert.strictEqual((await fill(sql, 2)).count, 2);
    const [got] = await sql`SELECT ${sql(columns)} FROM meta WHERE pid = ${directory} AND name = 'f0001'`;
    assert.deepStrictEqual({ ...got }, row(1));
    const [none] = await sql`SELECT rdev FROM meta WHERE pid = ${directory} AND name = 'f0001'`;
    assert.strictEqual(none.rdev, null);
  },
  async arrays(sql) {
    await fill(sql, 3);
    const got = await sql`SELECT name FROM meta WHERE pid = ${directory} AND name = ANY(${['f0001', 'f0002', 'x']})`;
    assert.deepStrictEqual(got.map((r) => r.name).sort(), ['f0001', 'f0002']);
    assert.deepStrictEqual((await sql`SELECT ${sql.array([1, 2], 1007)}::int4[] AS a`)[0].a, [1, 2]);
  },
  async pipelined(sql) {
    await fill(sql, 100);
    const got = await Promise.all([...Array(100).keys()].map((i) =>
      sql`SELECT fid FROM meta WHERE pid = ${directory} AND name = ${row(i).name}`));
    assert.deepStrictEqual(got.map((r) => r[0].fid), [...Array(100).keys()].map((i) => String(-i)));
  },
  async error_in_transaction(sql) {
    const e = await refused('23505', sql.begin(async (t) => {
      await fill(t, 1);
      await fill(t, 1);
    }));
    assert.strictEqual(e.constraint_name, 'meta_pkey');
    assert.strictEqual(await count(sql), 0);
  },
  async savepoint(sql) {
    await sql.begin('isolation level repeatable read', async (t) => {
      await fill(t, 1);
      await refused('23505', t.savepoint((p) => fill(p, 1)));
      await t`UPDATE meta SET size = 5 WHERE pid = ${directory} AND name = 'f0000'`;
    });
    assert.strictEqual(await count(sql), 1);
    await refused('25006', sql.begin('read only', (t) => fill(t, 2)));
  },
  async cursor(sql) {
    await fill(sql, 300);
    const seen = [];
    const list = sql`SELECT name FROM meta WHERE pid = ${directory} AND name > 'f' AND name < 'g' ORDER BY name`;
    for await (const rows of list.cursor(7)) seen.push(...rows.map((r) => r.name));
    assert.deepStrictEqual(seen, [...Array(300).keys()].map((i) => row(i).name));
    let rows = 0;
    await sql`SELECT name FROM meta WHERE pid = ${directory} AND name > 'f' AND name < 'g'`.forEach(() => { rows++; });
    assert.strictEqual(rows, 300);
  },
  async copy(sql) {
    const lines = [...Array(2000).keys()].map((i) => `${directory}\tc${i}\t${i}\n`);
    await pipeline(Readable.from(lines), await sql`COPY meta (pid, name, fid) FROM STDIN`.writable());
    assert.strictEqual(await count(sql), 2000);
    // Less than the client's stream holds: it leaves its socket paused for ever when the stream is full at the last row.
    let out = '';
    const from = await sql.unsafe(`COPY (SELECT pid, name, fid FROM meta WHERE pid = ${directory} AND name LIKE 'c19%') TO STDOUT`).readable();
    for await (const piece of from) out += piece;
    assert.deepStrictEqual(out.split('\n').filter(Boolean).sort(), lines.map((l) => l.trim()).filter((l) => l.includes('\tc19')).sort());
  },
  async cancel(sql) {
    const slow = sql`SELECT pg_sleep(60)`;
    setTimeout(() => slow.cancel(), 300);
    await refused('57014', slow);
    assert.strictEqual((await sql`SELECT 1 AS one`)[0].one, 1);
  },
  async listen(sql) {
    let heard;
    const got = new Promise((resolve) => { heard = resolve; });
    const { unlisten } = await sql.listen('postgresjs', heard);
    await sql.notify('postgresjs', 'text');
    assert.strictEqual(await got, 'text');
    await unlisten();
  },
  async simple_protocol(sql) {
    const got = await sql`SELECT 1 AS a; SELECT 2 AS a`.simple();
    assert.deepStrictEqual(got.map((r) => r[0].a), [1, 2]);
    await refused('42601', sql.unsafe('SELEC 1'));
  },
};

async function main() {
  const sql = postgres(options({}));
  await sql.unsafe(`INSERT INTO meta (pid, name, id, type) VALUES (0, '${name}', ${directory}, 'd')`);
  for (const [step, fn] of Object.entries(steps)) {
    try {
      await fn(sql);
      console.log(`ok postgresjs ${step}`);
    } catch (e) {
      failed++;
      console.log(`FAIL postgresjs ${step} ${String(e.message).replace(/\s+/g, ' ').slice(0, 300)}`);
    }
    await sql.unsafe(`DELETE FROM meta WHERE pid = ${directory} AND name >= 'a' AND name < 'z'`);
  }
  await sql.unsafe(`DELETE FROM meta WHERE pid = 0 AND name = '${name}'`);
  await sql.end();
  process.exit(failed ? 1 : 0);
}

main().catch((e) => { console.log(`FAIL postgresjs run ${e.message}`); process.exit(1); });
