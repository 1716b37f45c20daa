import pg from 'pg';
import { expect, test } from 'vitest';
import { openDatabase } from '../../../src/db/connection/database.js';
import { NamedLocks } from '../../../src/db/tables/named-locks.js';
import { testDatabase } from '../../support/database.js';

test('a lock lasts as long as its work, which may be longer than a transaction may idle', async () => {
  const database = await testDatabase();
  const url = new URL(database.url);
  url.searchParams.set('options', '-c idle_in_transaction_session_timeout=200');
  const db = openDatabase({ url: url.href, poolSize: 4 });
  const locks = new NamedLocks(db.pool);
  const other = new NamedLocks(database.db.pool);
  let finish: (result: string) => void;
  const work = new Promise<string>((resolve) => (finish = resolve));
  let slow: Promise<unknown> | undefined;
  await new Promise<void>((begin) => (slow = locks.run(['a', 'b'], () => (begin(), work))));
  // A transaction that has idled since is ended by the server.
  const idle = new pg.Client(url.href);
  const ended = new Promise((resolve) => idle.on('error', resolve));
  await idle.connect();
  await idle.query('BEGIN');
  expect(await ended).toMatchObject({ code: '25P03' });
  expect(await other.run(['c', 'b'], async () => 'twice')).toBeUndefined();
  expect(await other.run(['c'], async () => 'another')).toEqual({ result: 'another' });
  finish!('done');
  expect(await slow).toEqual({ result: 'done' });
  expect(await other.run(['b'], async () => 'after')).toEqual({ result: 'after' });
  await db.close();
  await database.close();
});
