import { afterAll, beforeAll, expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const provider = {
  baseUrl: new URL('http://127.0.0.1:9'),
  authUrl: new URL('http://127.0.0.1:9'),
  redirectUri: new URL('http://127.0.0.1:9'),
  clientId: 'client-1',
};
let admin: AdminFixture;
beforeAll(async () => {
  const clientSecret = new Secret('client-secret-of-tests');
  admin = await startAdmin({
    production: { ...provider, clientSecret, requestsPerSecond: 20, maxConcurrentRequests: 4 },
    test: { ...provider, clientSecret },
  });
});
afterAll(() => admin.stop());

const budget = async () => (await admin.call('GET', '/api/budget')).json as { data: object[] };
const QUIET = { used_last_minute: 0, refused_last_minute: 0 };
const SET = { environment: 'production', limit_per_second: 20, in_flight_limit: 4, source: 'set', ...QUIET };

test('shows each configured environment, before anything was asked of it, too', async () => {
  expect(await budget()).toEqual({
    data: [SET, { environment: 'test', limit_per_second: null, in_flight_limit: null, source: 'found', ...QUIET }],
  });
});

test('shows what was found, and what all workers of the last minute did', async () => {
  const { prisma } = admin.db;
  await prisma.requestBudget.create({ data: { environment: 'test', rate: 19.204 } });
  await prisma.requestBudget.create({ data: { environment: 'production', rate: 31 } });
  for (const worker of ['a', 'b'])
    await prisma.requestShare.create({
      data: { environment: 'test', worker, wanted: 9, held: 16, waiting: 1, used: 580, refused: 3 },
    });
  expect(await budget()).toEqual({
    data: [
      SET,
      {
        environment: 'test',
        limit_per_second: 19.2,
        in_flight_limit: 32,
        source: 'found',
        used_last_minute: 1_160,
        refused_last_minute: 6,
      },
    ],
  });
});
