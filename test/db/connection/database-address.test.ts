import { expect, test } from 'vitest';
import { connectionOptions } from '../../../src/db/connection/connection-options.js';
import { AddressFault, placesOf, readDatabaseAddress } from '../../../src/db/connection/database-address.js';
import { DatabaseClient } from '../../../src/db/connection/database-client.js';

test.each([
  ['postgres://u@db/muster', 'db:5432', { user: 'u', password: '', database: 'muster' }],
  ['POSTGRESQL://u:p@db', 'db:5432', { user: 'u', password: 'p', database: '' }],
  ['postgres://u@/db?host=/socket', '/socket/.s.PGSQL.5432', { user: 'u', database: 'db' }],
  ['postgres://u@/db?host=/socket&port=6000', '/socket/.s.PGSQL.6000', {}],
  ['postgres://u@:6000/db?host=/socket', '/socket/.s.PGSQL.6000', {}],
  ['postgres://u:p@%2Fvar%2Frun%2Fpostgresql/db', '/var/run/postgresql/.s.PGSQL.5432', { user: 'u', password: 'p' }],
  ['postgres://u:p@%2Fvar%2Frun%2Fpostgresql:6000/db', '/var/run/postgresql/.s.PGSQL.6000', {}],
  ['postgres:///db?host=/socket&user=u&password=p%2Fw', '/socket/.s.PGSQL.5432', { user: 'u', password: 'p/w', database: 'db' }],
  ['postgres://u:p@a:6000,b:6001,c/db?target_session_attrs=read-write', 'a:6000, b:6001, c:5432', { database: 'db' }],
  ['postgres://u:p@/db?host=a,b&port=1,2&target_session_attrs=primary', 'a:1, b:2', {}],
  ['postgres://u:p@/db?host=a,b&port=1&load_balance_hosts=random', 'a:1, b:1', {}],
  ['postgres://u:p@[::1],[fe80::1]:6000/db', '[::1]:5432, [fe80::1]:6000', {}],
  ['postgres://m%40x:p%2Fw%3A%25@db/my%20db', 'db:5432', { user: 'm@x', password: 'p/w:%', database: 'my db' }],
  ['postgres://u:p:w@ss@db/caf%C3%A9', 'db:5432', { user: 'u', password: 'p:w@ss', database: 'café' }],
  ['postgres://u:100%@db/a%2Fb', 'db:5432', { password: '100%', database: 'a/b' }],
  ['postgres://u:100%%40@db/m', 'db:5432', { password: '100%@' }],
  ['postgres:///m', 'localhost:5432', { user: '', database: 'm' }],
  ['postgres://u@db/ignored?dbname=m', 'db:5432', { database: 'm' }],
])('%s is read as libpq reads it', (text, places, parts) => {
  const address = readDatabaseAddress(text);
  expect(placesOf(address)).toBe(places);
  expect(address).toMatchObject(parts);
});

test.each([
  ['mysql://u:c4n4ry@db/m', 'postgres:// or postgresql://'],
  ['postgres:db', 'postgres:// or postgresql://'],
  ['postgres://u:c4n#4ry@db/m', '%23 for #'],
  ['postgres://u:54/c4n4ry@db/m', '%2F for /'],
  ['postgres://u:54?c4n4ry@db/m', '%3F for ?'],
  ['postgres://u:c4n4ry/m', 'a port must be a number'],
  ['postgres://u:p@db:65536/m', 'a port must be a number'],
  ['postgres://u:p@db:0/m', 'a port must be a number'],
  ['postgres://u:p@::1/m', 'a port must be a number'],
  ['postgres://u:c4n4ry%E9@db/m', 'UTF-8'],
  ['postgres://u@db/c4n4ry%3F', 'neither ? nor #'],
  ['postgres://u:p@a,b,c/m?port=1,2', 'as many ports as hosts'],
  ['postgres://u:p@/m?hostaddr=127.0.0.1', 'hostaddr'],
  ['postgres://u:p@a,b/m?target_session_attrs=standby', 'target_session_attrs must be read-write, primary or any'],
  ['postgres://u:p@a/m?target_session_attrs=c4n4ry', 'target_session_attrs must be read-write, primary or any'],
  ['postgres://u:p@a/m?sslmode=c4n4ry', 'sslmode must be one of disable'],
])('%s is refused in words that quote nothing of it', (text, words) => {
  const problem = (() => {
    try {
      return JSON.stringify(readDatabaseAddress(text));
    } catch (error) {
      return error instanceof AddressFault ? error.problem : String(error);
    }
  })();
  expect(problem).toContain(words);
  expect(problem).not.toMatch(/c4n|4ry/);
});

test.each([
  ['postgres://m%40x:p%2Fw%3A%25@db:6000/my%20db', { user: 'm@x', password: 'p/w:%', host: 'db', port: 6000, database: 'my db' }],
  ['postgres://u:p+%2B%26@[::1]/caf%C3%A9%2F%25%40', { password: 'p++&', host: '::1', port: 5432, database: 'café/%@' }],
  ['postgres://u@/m?host=/socket%20folder&sslmode=require', { host: '/socket folder', ssl: 'boolean' }],
  ['postgres://u@/', { user: 'u', database: 'u' }],
  ['postgres://u@db/m?sslmode=no-verify', { ssl: 'object' }],
])('the driver gets every part of %s decoded', (text, parts) => {
  const { user, password, host, port, database, ssl } = new DatabaseClient(connectionOptions(text, 'test'));
  expect({ user, password, host, port, database, ssl: typeof ssl }).toMatchObject(parts);
});

test('a connection that is silent is probed', () => {
  const options = connectionOptions('postgres://u@db/m', 'test');
  expect(options).toMatchObject({ keepAlive: true, keepAliveInitialDelayMillis: 60_000 });
});
