import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Secret } from '../../src/core/secret.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';

const folder = mkdtempSync(join(tmpdir(), 'sandbox-'));
const stateFile = join(folder, 'state', 'sandbox.json');
let sandbox: Sandbox | undefined;

afterEach(async () => {
  await sandbox?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('grants outlive a restart, single use and all, and the file is of no use to its reader', async () => {
  sandbox = await startSandbox({ stateFile });
  const { companyId } = sandbox.companies[1]!;
  const first = sandbox.issueRefreshToken(companyId);
  const second = await refresh(sandbox, first.reveal());
  expect(second.status).toBe(200);
  await sandbox.stop();

  sandbox = await startSandbox({ stateFile });
  expect((await refresh(sandbox, first.reveal())).status).toBe(400);
  expect(sandbox.reusedRefreshTokens).toBe(1);
  expect((await refresh(sandbox, second.token!)).status).toBe(200);
  expect(readFileSync(stateFile, 'utf8')).not.toContain(second.token);
});

async function refresh({ url, clientId, clientSecret }: { url: URL; clientId: string; clientSecret: Secret }, token: string) {
  const response = await fetch(new URL('/auth/token', url), {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: token,
      client_id: clientId,
      client_secret: clientSecret.reveal(),
    }),
  });
  const body = (await response.json()) as { refresh_token?: string };
  return { status: response.status, token: body.refresh_token };
}
