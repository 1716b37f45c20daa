import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { publicKey } from '../../../src/certificates/certificate.js';
import { listSigningKeys } from '../../../src/db/tables/certificates.js';
import { type TestDatabase, testDatabase } from '../../support/database.js';
import { startMuster, startShell } from '../../support/process.js';
import { waitFor } from '../../support/wait-for.js';
import { makeGadgets } from '../../warehouse/gadgets.js';
import { HOME, onTerminal, runMuster } from '../run-muster.js';

const RECORDS = 500;
const ROOT = process.cwd();
/** The lock that the middle of the slow list waits for. */
const MIDDLE = 4711;

let database: TestDatabase;
let env: Record<string, string>;
let folder: string;
let holder: pg.Client;
beforeAll(async () => {
  database = await testDatabase();
  await makeGadgets(database.db.pool, RECORDS);
  // After nine megabytes comes a row that waits for the holder of the lock: exports of it can be caught in the middle.
  await database.db.pool.query(`
    CREATE TABLE mirror.slow (LIKE mirror.employees INCLUDING ALL);
    CREATE FUNCTION public.held(id text) RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN
      IF id = 'g499' THEN PERFORM pg_advisory_xact_lock_shared(${MIDDLE}); END IF; RETURN ''; END $$;
    CREATE VIEW warehouse.slow AS
      SELECT environment, company_id, id, repeat('x', 20000) || public.held(id) AS text FROM mirror.gadgets WHERE deleted_at IS NULL`);
  holder = new pg.Client(database.url);
  await holder.connect();
  env = { DATABASE_URL: database.url, MUSTER_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}` };
});
afterAll(async () => {
  await holder.end();
  await database.close();
});
beforeEach(async () => {
  await goOn();
  folder = await mkdtemp(join(tmpdir(), 'muster-export-'));
  return () => rmSync(folder, { recursive: true });
});

const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
const manifestOf = (path: string) => JSON.parse(readFileSync(`${path}.manifest.json`, 'utf8'));
const exporting = (resource: string, path: string) =>
  startMuster(['export', resource, '--format', 'ndjson', '--output', path], { ...env, MUSTER_HOME: HOME });
/** From now on an export of the slow list gets no further than its middle, until it may go on. */
const holdUp = () => holder.query(`SELECT pg_advisory_lock(${MIDDLE})`);
const goOn = () => holder.query('SELECT pg_advisory_unlock_all()');
/** Resolves once the export is in the middle: something of it is on the disk. */
const inTheMiddle = () =>
  waitFor(() => readdirSync(folder).some((name) => name.endsWith('.part') && statSync(join(folder, name)).size > 0), {
    what: 'a part of the export',
  });

test('a file has its manifest beside it, and only its owner may read them', async () => {
  const path = join(folder, 'gadgets.parquet');
  const args = ['export', 'gadgets', '--format', 'parquet', '--output', path];
  const first = await runMuster(args, env);
  expect(first.stderr).toBe('');
  expect(first.stdout).toContain(`${RECORDS} rows`);
  expect(first.stdout).toContain(`--since ${manifestOf(path).seq}`);
  expect(manifestOf(path)).toMatchObject({ rows: RECORDS, sha256: sha256(path) });
  for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);

  const again = await runMuster([...args, '--mode', '640', '--json', '--environment', 'test'], env);
  expect(again.json()).toEqual([{ output: path, ...manifestOf(path) }]);
  expect(manifestOf(path)).toMatchObject({ rows: RECORDS / 2, sha256: sha256(path) });
  expect(statSync(path).mode & 0o777).toBe(0o640);
  expect(readdirSync(folder).toSorted()).toEqual([
    'gadgets.parquet',
    'gadgets.parquet.manifest.json',
    'gadgets.parquet.manifest.jws',
  ]);
});

test('a company is named by its name or the beginning of its id; a name that means none or several writes nothing', async () => {
  await database.db.pool.query(`
    INSERT INTO mirror.companies (environment, company_id, name, data)
    SELECT environment, company_id, 'Gadgets in ' || environment, '{}' FROM muster.connections
    ON CONFLICT (environment, company_id) DO UPDATE SET name = EXCLUDED.name`);
  const path = join(folder, 'gadgets.csv');
  const exported = (company: string) =>
    runMuster(['export', 'gadgets', '--format', 'csv', '--output', path, '--company', company], env);
  for (const refused of ['Nowhere', 'gadgets', 'a000']) {
    const { code, stderr } = await exported(refused);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/No company has "Nowhere" in its name|may mean 2 companies/)]);
    expect(readdirSync(folder)).toEqual([]);
  }
  expect((await exported('gadgets in TEST')).code).toBe(0);
  expect(manifestOf(path)).toMatchObject({ rows: RECORDS / 2, lists: [{ environment: 'test' }] });
});

test('standard output has the data alone, and the manifest goes to standard error or where it is told', async () => {
  const args = ['export', 'gadgets', '--raw', '--format', 'csv', '--output', '-'];
  const plain = await runMuster(args, env);
  expect(plain.code).toBe(0);
  const manifest = JSON.parse(plain.stderr);
  expect(manifest.rows).toBe(RECORDS);
  expect(createHash('sha256').update(plain.stdout).digest('hex')).toBe(manifest.sha256);
  const path = join(folder, 'manifest.json');
  const beside = await runMuster([...args, '--manifest', path], env);
  expect(beside.stderr).toBe('');
  expect(JSON.parse(readFileSync(path, 'utf8')).sha256).toBe(createHash('sha256').update(beside.stdout).digest('hex'));
  const wrong = await runMuster(['export', 'gadgets', '--format', 'csv', '--output', join(folder, 'x'), '--manifest', path], env);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/--output -/) });
});

test('the signed manifest is the manifest, and is checked with the file beside it', async () => {
  const path = join(folder, 'gadgets.csv');
  const args = ['export', 'gadgets', '--format', 'csv', '--output'];
  expect((await runMuster([...args, path], env)).code).toBe(0);
  const [manifest, signed] = [`${path}.manifest.json`, `${path}.manifest.jws`];
  const jws = readFileSync(signed, 'utf8');
  expect(Buffer.from(jws.split('.')[1]!, 'base64url').toString()).toBe(readFileSync(manifest, 'utf8'));
  expect(manifestOf(path)).toMatchObject({ file: 'gadgets.csv', rows: RECORDS });

  // The key is among those that are shown to everybody.
  const keys = join(folder, 'keys.json');
  const known = await listSigningKeys(database.db);
  writeFileSync(keys, JSON.stringify({ keys: known.map(publicKey) }));
  const check = (...more: string[]) => runMuster(['certificate', 'check', signed, '--keys', keys, ...more]);
  const right = await check();
  expect([right.code, right.stderr]).toEqual([
    0,
    expect.stringMatching(/gadgets\.csv is the file that it names[^]*The manifest holds/),
  ]);
  expect((await check('--json')).json()).toMatchObject([{ file: 'gadgets.csv', rows: RECORDS, sha256: sha256(path) }]);

  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace('g1', 'g2'));
  expect(await check()).toMatchObject({ code: 1, stderr: expect.stringMatching(/names gadgets\.csv with the sha256 /) });
  rmSync(path);
  expect(await check()).toMatchObject({ code: 0, stderr: expect.stringMatching(/gadgets\.csv is not in its folder/) });
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(`"rows": ${RECORDS}`, '"rows": 1'));
  expect(await check()).toMatchObject({ code: 1, stderr: expect.stringMatching(/manifest\.json says something else/) });
  rmSync(manifest);
  const [header, payload, signature] = jws.split('.');
  const forged = Buffer.from(Buffer.from(payload!, 'base64url').toString().replace(`"rows": ${RECORDS}`, '"rows": 1'));
  writeFileSync(signed, [header, forged.toString('base64url'), signature].join('.'));
  expect(await check()).toMatchObject({ code: 1, stderr: expect.stringMatching(/does not hold: it was changed/) });

  const beside = join(folder, 'stream.json');
  await runMuster(['export', 'gadgets', '--format', 'csv', '--output', '-', '--manifest', beside], env);
  const streamed = readFileSync(join(folder, 'stream.jws'), 'utf8');
  expect(Buffer.from(streamed.split('.')[1]!, 'base64url').toString()).toBe(readFileSync(beside, 'utf8'));
});

test('where proofs are required, a list without one or with a late one is named, and nothing is written', async () => {
  const path = join(folder, 'gadgets.csv');
  writeFileSync(path, 'what stood there');
  const args = ['export', 'gadgets', '--format', 'csv', '--output', path, '--require-verified'];
  const { rows: companies } = await database.db.pool.query<{ environment: string; id: string }>(
    'SELECT environment, company_id::text AS id FROM muster.connections ORDER BY 1, 2',
  );
  expect(companies).toHaveLength(2);
  const [one, other] = companies as [(typeof companies)[0], (typeof companies)[0]];
  const prove = ({ id }: { id: string }, hours: number | null) =>
    database.db.pool.query(
      `INSERT INTO muster.lists (environment, company_id, resource, last_verified_at)
       SELECT environment, company_id, 'gadgets', now() - $2 * interval '1 hour' FROM muster.connections WHERE company_id = $1
       ON CONFLICT (environment, company_id, resource) DO UPDATE SET last_verified_at = EXCLUDED.last_verified_at`,
      [id, hours],
    );
  const refused = async (...said: RegExp[]) => {
    const { code, stderr } = await runMuster(args, env);
    expect(code).toBe(1);
    for (const each of said) expect(stderr).toMatch(each);
    expect(readdirSync(folder)).toEqual(['gadgets.csv']);
    expect(readFileSync(path, 'utf8')).toBe('what stood there');
  };
  await prove(one, 1);
  await prove(other, null);
  await refused(
    /1 of 2 lists of gadgets/,
    new RegExp(`${other.environment} ${other.id} \\(never proved\\)`),
    /\[lists_unproved\]/,
  );
  await prove(other, 27);
  await refused(new RegExp(`${other.environment} ${other.id} \\(late, last proved `));
  await prove(other, 2);
  expect((await runMuster(args, env)).code).toBe(0);
  expect(manifestOf(path).lists.map(({ is_late }: { is_late: boolean }) => is_late)).toEqual([false, false]);
  // Nobody expects a proof of a company that is paused.
  await prove(other, 27);
  await database.db.pool.query('UPDATE muster.connections SET paused = true WHERE company_id = $1', [other.id]);
  expect((await runMuster(args, env)).code).toBe(0);
  await database.db.pool.query('UPDATE muster.connections SET paused = false');
  await database.db.pool.query('UPDATE muster.lists SET last_verified_at = NULL');
});

test('on a terminal it shows how far it is, and keeps its data to itself', async () => {
  const muster = `${process.execPath} ${join(ROOT, 'bin/muster')} export gadgets --format`;
  const shown = await onTerminal(`${muster} ndjson --output ${join(folder, 'gadgets.ndjson')}`, env);
  expect(shown).toMatch(/gadgets {2}█+ 100 % {2}500 rows, [\d,]+ a second/);
  expect(shown).toContain(`${RECORDS} rows; 0 of 2 lists proved complete`);
  expect(shown).not.toContain('Gadget number');
  const refused = await onTerminal(`${muster} parquet --output - || echo exit $?`, env);
  expect(refused).toMatch(/nothing for a terminal.*\s+exit 2/);
});

test('a reader that stops early is no failure', async () => {
  const line = `${join(ROOT, 'bin/muster')} export slow --format ndjson --output - | head -c 100 | wc -c`;
  const shell = startShell(line, ROOT, { ...env, MUSTER_HOME: HOME });
  expect(await shell.exit).toMatchObject({ code: 0 });
  expect(shell.stdout.trim()).toBe('100');
  expect(shell.stderr).toBe('');
});

test('what is wrong is said, with what to do', async () => {
  const of = (...args: string[]) => runMuster(['export', ...args], env);
  expect(await of('gadgets', '--output', join(folder, 'x'))).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--format/),
  });
  expect(await of('widgets', '--format', 'csv', '--output', join(folder, 'x'))).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/There are: .*gadgets/),
  });
  expect(await of('gadgets', '--format', 'csv', '--output', join(folder, 'no', 'x'))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/ENOENT.*Make its folder first.*\[export_failed\]/),
  });
  expect(await of('gadgets', '--format', 'csv', '--output', folder)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is no file/),
  });
  expect(await of('gadgets', '--format', 'csv', '--output', 's3://bucket')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/s3:\/\/bucket\//),
  });
  expect(await of('gadgets', '--format', 'csv', '--output', join(folder, 'x'), '--since', 'yesterday')).toMatchObject({
    code: 2,
  });
  expect(await of('gadgets', '--format', 'csv', '--output', join(folder, 'x'), '--since', '77')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/The feed ends at 0/),
  });
  const { DATABASE_URL: _, ...without } = env;
  expect(await runMuster(['export', 'gadgets', '--format', 'csv', '--output', join(folder, 'x')], without)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/does not run: start Muster/),
  });
  expect(readdirSync(folder)).toEqual([]);
});

test('a symbolic link is not followed, wherever it leads', async () => {
  const target = join(folder, 'target.csv');
  const link = join(folder, 'link.csv');
  writeFileSync(target, 'before');
  for (const [leadsTo, what] of [
    ['target.csv', target],
    ['nowhere.csv', 'which is not there'],
  ] as const) {
    symlinkSync(leadsTo, link);
    const { code, stderr } = await runMuster(['export', 'gadgets', '--format', 'csv', '--output', link], env);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`is a symbolic link. Name the file that it leads to, ${what}`)]);
    rmSync(link);
  }
  expect(readdirSync(folder)).toEqual(['target.csv']);
  expect(readFileSync(target, 'utf8')).toBe('before');
});

test.each(['SIGTERM', 'SIGINT'] as const)('%s in the middle leaves nothing, and what stood there', async (signal) => {
  const path = join(folder, 'slow.ndjson');
  writeFileSync(path, 'what stood there');
  await holdUp();
  const running = exporting('slow', path);
  await inTheMiddle();
  running.kill(signal);
  expect(await running.exit).toEqual({ code: 1, signal: null });
  expect(running.stderr).toMatch(/called off/);
  expect(readdirSync(folder)).toEqual(['slow.ndjson']);
  expect(readFileSync(path, 'utf8')).toBe('what stood there');
});

test('a database that goes away in the middle is a failure that leaves nothing', async () => {
  const path = join(folder, 'slow.ndjson');
  await holdUp();
  const running = exporting('slow', path);
  await inTheMiddle();
  await database.db.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'muster export' AND datname = current_database()`,
  );
  expect(await running.exit).toEqual({ code: 1, signal: null });
  expect(running.stderr).toMatch(/\[database_unavailable\]/);
  expect(readdirSync(folder)).toEqual([]);
});

test('what one that was killed left behind is removed by the next, and that of one under way is not', async () => {
  const path = join(folder, 'slow.ndjson');
  await holdUp();
  const killed = exporting('slow', path);
  await inTheMiddle();
  killed.kill('SIGKILL');
  await killed.exit;
  const [left] = readdirSync(folder);
  expect(left).toMatch(/\.part$/);
  expect(existsSync(path)).toBe(false);

  const underWay = exporting('slow', path);
  await waitFor(() => readdirSync(folder).every((name) => name !== left), {
    what: 'the part of the one that was killed to be gone',
  });
  await inTheMiddle();
  expect((await runMuster(['export', 'gadgets', '--format', 'ndjson', '--output', path], env)).code).toBe(0);
  expect(manifestOf(path)).toMatchObject({ resource: 'gadgets', sha256: sha256(path) });
  await goOn();
  expect(await underWay.exit).toEqual({ code: 0, signal: null });
  expect(manifestOf(path)).toMatchObject({ resource: 'slow', sha256: sha256(path) });
  expect(readdirSync(folder).toSorted()).toEqual(['slow.ndjson', 'slow.ndjson.manifest.json', 'slow.ndjson.manifest.jws']);
});
