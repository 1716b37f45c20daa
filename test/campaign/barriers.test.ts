import { expect, test } from 'vitest';
import { tryBarriers } from '../process/barrier-trial.js';

const NIGHTS = Number(process.env['BARRIER_NIGHTS'] ?? 40);

test('who loads to barriers while workers write, and are killed, has at each of them the list as its walk received it', async () => {
  expect(await tryBarriers({ companies: 8, nights: NIGHTS, kills: true })).toBe(8 * NIGHTS * 2);
});
