import { describe, expect, test } from 'vitest';
import { answerText, readTokenResponse, suspectOf } from '../../src/oauth/token-response.js';
import { registerSecret } from '../../src/observability/secret-registry.js';

const read = (status: number, body: unknown, headers: Record<string, string> = {}, encoding: BufferEncoding = 'utf8') =>
  readTokenResponse({ status, headers, bytes: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body), encoding) }, 0);

const GRANT = {
  access_token: 'access-1',
  expires_in: 1799,
  token_type: 'Bearer',
  refresh_token: 'refresh-1',
  company_id: '0F8FAD5B-D9CB-469F-A165-70867728950E',
};

describe('granted', () => {
  test('with everything', () => {
    const answer = read(200, GRANT);
    expect(answer).toMatchObject({ kind: 'granted', lifetimeSeconds: 1799, companyId: '0f8fad5b-d9cb-469f-a165-70867728950e' });
    if (answer.kind !== 'granted') return;
    expect([answer.accessToken.reveal(), answer.refreshToken?.reveal()]).toEqual(['access-1', 'refresh-1']);
    expect(JSON.stringify(answer)).not.toMatch(/access-1|refresh-1/);
  });

  test.each([
    [3600, 3600],
    ['1799', 1799],
    ['12.5', 12.5],
    [undefined, 1800],
    [null, 1800],
    ['', 1800],
    [0, 1800],
    [-5, 1800],
    ['soon', 1800],
    [true, 1800],
    [0.5, 1800],
    [86_400, 86_400],
    [5_184_000, 86_400],
    [1e12, 86_400],
    ['1e12', 1800],
    ['9'.repeat(400), 1800],
  ])('expires_in %j means %i s', (expires, seconds) => {
    expect(read(200, { ...GRANT, expires_in: expires })).toMatchObject({ kind: 'granted', lifetimeSeconds: seconds });
  });

  test.each(['eyJhbGciOi.J9.x_y-z', 'a+b/c~d==', 'opaque|with:other;signs', 'a'.repeat(16_384)])(
    'with the access token %.30s',
    (token) => {
      const answer = read(200, { ...GRANT, access_token: token });
      expect(answer.kind === 'granted' && answer.accessToken.reveal()).toBe(token);
    },
  );

  test.each(['line\r\nbreak', 'nul\u0000', 'r'.repeat(100_000), 'ünïcode'])(
    'whatever the refresh token looks like (%.10j): no header carries it, and it is never lost',
    (token) => {
      const answer = read(200, { ...GRANT, refresh_token: token });
      expect(answer.kind === 'granted' && answer.refreshToken?.reveal()).toBe(token);
    },
  );

  test.each(['bearer', 'BEARER', undefined, null])('token_type %j', (type) => {
    expect(read(200, { ...GRANT, token_type: type }).kind).toBe('granted');
  });

  test.each([undefined, null, '', 5])('refresh_token %j: the old one stays', (token) => {
    expect(read(200, { ...GRANT, refresh_token: token })).not.toHaveProperty('refreshToken');
  });
});

test.each([
  ['no access token', { ...GRANT, access_token: undefined }],
  ['an empty one', { ...GRANT, access_token: '' }],
  ['a line break in it', { ...GRANT, access_token: 'access-1\r\nX-Evil: 1' }],
  ['a control character in it', { ...GRANT, access_token: 'access\u0000-1' }],
  ['a space in it', { ...GRANT, access_token: 'access 1' }],
  ['a letter in it that no header takes', { ...GRANT, access_token: 'accéss-1' }],
  ['one of 5 MB', { ...GRANT, access_token: 'a'.repeat(5_000_000) }],
  ['another token type', { ...GRANT, token_type: 'mac' }],
  ['a company that is no GUID', { ...GRANT, company_id: '42' }],
])('malformed: %s; the refresh token is kept', (_what, body) => {
  const answer = read(200, body);
  expect(answer.kind === 'malformed' && answer.refreshToken.reveal()).toBe('refresh-1');
});

test.each([
  [200, '', 'ambiguous'],
  [200, '<html>', 'ambiguous'],
  [200, '[]', 'ambiguous'],
  [200, '{"access_token":""}', 'ambiguous'],
  [400, { error: 'invalid_grant' }, 'refused'],
  [401, { error: 'invalid_grant' }, 'refused'],
  [200, { error: 'invalid_grant' }, 'refused'],
  [408, { error: 'invalid_grant' }, 'refused'],
  [400, { error: 'invalid_grant', message: 'invalid_client' }, 'refused'],
  [400, { error: { code: 'invalid_grant' } }, 'unexplained'],
  [400, { error: ['invalid_grant'] }, 'unexplained'],
  [400, [{ error: 'invalid_grant' }], 'unexplained'],
  [400, { error: 'Invalid_Grant' }, 'unexplained'],
  [400, 'error=invalid_grant', 'unexplained'],
  [400, { message: 'in a format of its own' }, 'unexplained'],
  [400, { error: 'access_denied', error_description: 'invalid_client, access_token not expired' }, 'unexplained'],
  [400, { error: 'unknown_error' }, 'unexplained'],
  [400, { error: 'temporarily_unavailable' }, 'unexplained'],
  [200, { error: 'temporarily_unavailable' }, 'unexplained'],
  [200, { error: { code: 'temporarily_unavailable' } }, 'unexplained'],
  [200, { error: 'invalid_client' }, 'client_refused'],
  [200, { error: '' }, 'ambiguous'],
  [200, { error: null }, 'ambiguous'],
  [200, { Message: 'An error has occurred.' }, 'ambiguous'],
  [204, '', 'ambiguous'],
  [400, { error: 'invalid_client' }, 'client_refused'],
  [401, { error: 'invalid_client' }, 'client_refused'],
  [400, { error: 'unsupported_grant_type' }, 'client_refused'],
  [400, { code: 'invalid_client' }, 'client_refused'],
  [400, { errors: [{ reason: 'UNAUTHORIZED_CLIENT' }] }, 'client_refused'],
  [400, 'error=invalid_scope', 'client_refused'],
  [400, { error: 'invalid_request' }, 'unexplained'],
  [400, 'The code has expired.', 'unexplained'],
  [400, '"expired"', 'unexplained'],
  [400, '<html>', 'unexplained'],
  [400, '', 'unexplained'],
  [401, { error: 'invalid_request' }, 'unexplained'],
  [401, { message: 'in a format of its own' }, 'client_refused'],
  [401, '', 'client_refused'],
  [401, '<html>', 'client_refused'],
  [403, {}, 'unexplained'],
  [403, '<html>', 'unexplained'],
  [404, '', 'unexplained'],
  [302, '', 'unexplained'],
  [408, '', 'transient'],
  [429, { error: 'slow_down' }, 'transient'],
  [429, { error: 'invalid_grant' }, 'refused'],
  [500, { error: 'invalid_grant' }, 'refused'],
  [500, { error: 'server_error' }, 'transient'],
  [503, { error: 'invalid_client' }, 'transient'],
  [503, '', 'transient'],
])('%i %j is %s', (status, body, kind) => expect(read(status, body).kind).toBe(kind));

describe('in another encoding than UTF-8', () => {
  test('a pair is not lost over a name that stands beside it', () => {
    const answer = read(200, { ...GRANT, company_name: 'Brattskjær Båtbyggeri' }, {}, 'latin1');
    expect(answer.kind === 'granted' && answer.refreshToken?.reveal()).toBe('refresh-1');
  });

  test.each([
    [503, 'Außer Betrieb', 'transient'],
    [403, 'Zugriff verweigert für', 'unexplained'],
    [400, 'Das ist ungültig.', 'unexplained'],
    [400, '{"error":"invalid_grant","error_description":"ungültig"}', 'refused'],
  ])('%i %s is %s', (status, body, kind) => expect(read(status, body, {}, 'latin1').kind).toBe(kind));
});

test('Retry-After is heard, and unknown error texts are not repeated', () => {
  expect(read(503, '', { 'retry-after': '7' })).toMatchObject({ retryAfterMs: 7000 });
  expect(JSON.stringify(read(400, { error: 'secret-1', error_description: 'secret-2' }))).not.toContain('secret');
});

test.each([
  ['access_denied', 'access_denied'],
  ['a'.repeat(40), 'a'.repeat(40)],
  ['a'.repeat(41), undefined],
  ['Access_Denied', undefined],
  ['access denied', undefined],
  ['access_denied\n', undefined],
  ['error_1', undefined],
  ['registered_secret_token', undefined],
])('the error %j is kept as %j', (told, kept) => {
  registerSecret('registered_secret_token');
  const answer = read(400, { error: told });
  expect(answer.kind === 'unexplained' && answer.error).toBe(kept);
  expect(answer.kind === 'unexplained' && answerText(answer)).toBe(kept === undefined ? '400' : `400 ${kept}`);
});

test('a pair is taken even with an error beside it', () => {
  expect(read(200, { ...GRANT, error: 'invalid_grant' }).kind).toBe('granted');
  expect(read(200, { refresh_token: 'refresh-2', error: 'invalid_grant' }).kind).toBe('malformed');
});

test.each([
  [400, { error: 'access_denied' }, 'token'],
  [200, { error: 'access_denied' }, 'token'],
  [400, '<html>', 'token'],
  [400, { error: 'server_error' }, 'service'],
  [200, { error: 'temporarily_unavailable' }, 'service'],
  [401, { error: 'access_denied' }, 'client'],
  [404, '<html>', 'client'],
])('%i %j makes a person suspect the %s', (status, body, suspect) => {
  const answer = read(status, body);
  expect(answer.kind === 'unexplained' && suspectOf(answer)).toBe(suspect);
});
