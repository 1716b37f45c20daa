import { expect, test } from 'vitest';
import { ADVICE } from '../../src/core/advice.js';
import { MusterError } from '../../src/core/errors.js';
import { type Check, ok } from '../../src/doctor/check.js';
import { type ConfigurationState, checkConfiguration } from '../../src/doctor/configuration.js';
import { type Examined, examine } from '../../src/doctor/examine.js';
import { registerSecret } from '../../src/observability/secret-registry.js';
import { found } from './findings.js';

const CANARY = 'doctor-canary-value-1';
registerSecret(CANARY);

const check = (name: string, look: Check['look']): Check => ({ name, look });

test('one check that hangs and one that fails keep no other from being looked at, and no secret is shown', async () => {
  const all: Examined[] = [];
  const checks = [
    check('hangs', () => new Promise(() => {})),
    check('fails', () => Promise.reject(new Error(`with ${CANARY}`))),
    check('says why', () => Promise.reject(new MusterError('queue_unavailable', `The queue at ${CANARY} is away.`))),
    check('is well', async () => [ok(`all of ${CANARY}`)]),
  ];
  for await (const finding of examine(checks, 50)) all.push(finding);
  expect(all).toEqual([
    { check: 'hangs', level: 'problem', found: 'did not end within 0.05 s', next: expect.any(String) as string },
    { check: 'fails', level: 'problem', found: 'could not be looked at (Error)', next: expect.any(String) as string },
    {
      check: 'says why',
      level: 'problem',
      found: 'The queue at [redacted] is away.',
      next: ADVICE.queue_unavailable,
    },
    { check: 'is well', level: 'ok', found: 'all of [redacted]' },
  ]);
});

const RIGHT: ConfigurationState = {
  faults: [],
  sources: [
    { name: 'DATABASE_URL', secret: true, file: '/run/secrets/database_url' },
    { name: 'MUSTER_ADMIN_TOKEN', secret: true },
    { name: 'PORT', secret: false },
  ],
  knownNames: ['DATABASE_URL', 'MUSTER_ADMIN_TOKEN', 'PORT', 'PUBLIC_URL'],
  variables: ['PATH', 'DATABASE_URL_FILE', 'MUSTER_ADMIN_TOKEN', 'PORT', 'HOSTNAME'],
  adminToken: { kind: 'set', length: 32 },
  environments: ['production'],
  publicUrl: new URL('https://muster.example.com'),
  isShared: true,
};

test('settings that are right are said to be, with where each secret comes from', async () => {
  expect(await found(checkConfiguration(RIGHT))).toEqual([
    'ok: 3 settings set, none is wrong',
    'ok: secrets: DATABASE_URL from the file /run/secrets/database_url, MUSTER_ADMIN_TOKEN from its variable',
    'ok: the admin token is set',
  ]);
});

test.each<[string, Partial<ConfigurationState>, string]>([
  ['a fault', { faults: [{ where: 'PORT', problem: 'must be a port', example: '8080' }] }, 'problem: PORT: must be a port'],
  ['a short token', { adminToken: { kind: 'set', length: 5 } }, 'warning: the admin token has 5 characters, and can be guessed'],
  [
    'a token that others read',
    { adminToken: { kind: 'kept', path: '/m/admin-token', length: 43, isExposed: true }, isShared: false },
    'warning: others than its owner may read the admin token in /m/admin-token',
  ],
  [
    'a token of each machine its own',
    { adminToken: { kind: 'kept', path: '/m/admin-token', length: 43, isExposed: false } },
    'warning: the admin token is kept in /m/admin-token, and every other machine makes one of its own',
  ],
  ['a typing error', { variables: ['PUBLIC_UR'] }, 'warning: PUBLIC_UR is no setting of Muster'],
  [
    'a proxy by a variable that is not read',
    { variables: ['all_proxy', 'FTP_PROXY'] },
    'warning: all_proxy is set, and Muster does not read it',
  ],
  ['no service', { environments: [] }, 'warning: no environment of the service is configured'],
  [
    'links that lead nowhere',
    { publicUrl: new URL('http://127.0.0.1:8080') },
    'warning: connect links lead to http://127.0.0.1:8080, which customers cannot reach',
  ],
])('%s is found', async (_what, change, line) => {
  expect(await found(checkConfiguration({ ...RIGHT, ...change }))).toContain(line);
});
