import { expect, test } from 'vitest';
import { tryBarriers } from './barrier-trial.js';

test('who loads to barriers while four workers write has at each of them the list as its walk received it', async () => {
  expect(await tryBarriers({ companies: 6, nights: 4, kills: false })).toBe(6 * 4 * 2);
});
