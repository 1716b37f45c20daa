import { afterAll, beforeAll, expect, test } from 'vitest';
import { shareOf } from './share.js';
import { TokenFleet, type TokenProcess } from './token-fleet.js';

const PROCESSES = 8;
let fleet: TokenFleet;
let processes: TokenProcess[];

beforeAll(async () => {
  fleet = await TokenFleet.open(1);
  processes = await Promise.all(Array.from({ length: PROCESSES }, () => fleet.start()));
});
afterAll(async () => {
  await Promise.all(processes.map((one) => one.kill()));
  await fleet.close();
});

test('8 processes that need the same token at once cause one refresh, and get the same one', async () => {
  const { companyId } = fleet.sandbox.companies[0]!;
  const rounds = shareOf(1_000);
  for (let round = 0; round < rounds; round++) {
    await fleet.expire(companyId);
    const before = fleet.refreshes;
    const answers = await Promise.all(processes.map((one) => one.ask(companyId)));
    expect(fleet.refreshes - before, `round ${round}`).toBe(1);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toHaveProperty('token');
  }
  expect(fleet.sandbox.reusedRefreshTokens).toBe(0);
  expect((await fleet.room.connections.find({ environment: 'test', companyId }))?.status).toBe('active');
});
