import { describe, expect, test } from 'vitest';
import { refresh, type TokenResponse } from './client.js';
import { FEW, json, lessonSandbox, MANY } from './lesson-sandbox.js';

const { ask, clock, rawAnswer, sandbox, tokens } = await lessonSandbox();

describe('faults that pass', () => {
  test.each([
    ['down', 503, /application\/json/],
    ['html', 200, /text\/html/],
    ['empty', 200, /json/],
    ['redirect', 302, /text\/html/],
    ['firewall', 403, /text\/html/],
    ['gateway', 404, /text\/html/],
    ['too-early', 425, /json/],
    ['closed', 499, /json/],
  ])('%s: %i', async (name, status, type) => {
    expect(sandbox.lessons.break(name).until).toBe(clock.now() + 45_000);
    const address = new URL(`/api/companies/${MANY}/employees?skip=0&$take=5`, sandbox.url);
    const headers = { authorization: `Bearer ${tokens.get(MANY)}` };
    const response = await fetch(address, { headers, redirect: 'manual' });
    expect([response.status, response.headers.get('content-type')]).toEqual([status, expect.stringMatching(type)]);
    const text = await response.text();
    if (name === 'empty') expect(text).toBe('');
    if (name === 'redirect') expect(response.headers.get('location')).toBe('https://status.example.com/');
  });

  test('cut-json and drop', async () => {
    sandbox.lessons.break('cut-json');
    await expect(json(ask('employees'))).rejects.toThrow(SyntaxError);
    sandbox.lessons.mend();
    sandbox.lessons.break('drop');
    await expect(json(ask('employees'))).rejects.toThrow(TypeError);
  });

  test.each([
    ['two-lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\nConnection: close\r\n\r\n[]'],
    ['bare-lf', 'HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 2\n\n[]'],
  ])('%s: bytes that are no HTTP', async (name, bytes) => {
    sandbox.lessons.break(name);
    expect(await rawAnswer('employees')).toBe(bytes);
  });

  test('long-header', async () => {
    expect(await rawAnswer('employees')).not.toMatch(/x-trace/);
    sandbox.lessons.break('long-header');
    expect(await rawAnswer('employees')).toMatch(/^HTTP\/1.1 200 [^]*x-trace: x{20000}\r\n[^]*"totalRecords":240/);
  });

  test('slow-down and limit-date', async () => {
    sandbox.lessons.break('slow-down');
    const asked = [await ask('employees'), await ask('employees'), await ask('employees')];
    expect(asked.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual([
      [429, '1.5'],
      [200, null],
      [429, '1.5'],
    ]);
    sandbox.lessons.mend();
    sandbox.lessons.break('limit-date');
    const { status, headers } = await ask('employees');
    expect([status, headers.get('x-ratelimit-limit-second')]).toEqual([429, '10']);
    expect(Date.parse(headers.get('x-ratelimit-reset')!)).toBeGreaterThan(clock.now());
    expect((await ask('employees')).status).toBe(200);
  });
});

describe('odd answers to a refresh', () => {
  test.each<[string, number, RegExp]>([
    ['token-early', 400, /"error":"access_denied".*not expired/],
    ['token-unknown', 400, /"unknown_error"/],
    ['token-unavailable', 400, /"temporarily_unavailable"/],
    ['token-message', 400, /^\{"Message":/],
    ['token-error-200', 200, /"temporarily_unavailable"/],
    ['token-html', 200, /^<!doctype html>/],
    ['token-nothing', 204, /^$/],
    ['token-down', 503, /./],
  ])('%s: %i', async (name, status, text) => {
    const token = sandbox.issueRefreshToken(MANY).reveal();
    sandbox.lessons.break(name);
    // The access token of before is at its end, so that the next sync asks for another one.
    expect((await ask('employees')).status).toBe(401);
    const response = await refresh(sandbox, token);
    expect([response.status, await response.text()]).toEqual([status, expect.stringMatching(text)]);
    expect((await refresh(sandbox, sandbox.issueRefreshToken(FEW).reveal())).status).toBe(200);
    clock.forward(45);
    // The token was not spent.
    const granted = (await (await refresh(sandbox, token)).json()) as TokenResponse;
    expect(granted.company_id).toBe(MANY);
  });

  test('token-cut', async () => {
    const token = sandbox.issueRefreshToken(MANY).reveal();
    sandbox.lessons.break('token-cut');
    await expect(refresh(sandbox, token)).rejects.toThrow(TypeError);
    sandbox.lessons.mend();
    expect((await refresh(sandbox, token)).status).toBe(200);
  });
});
