import { expect, test } from 'vitest';
import { serviceSays } from '../../src/http/service-says.js';
import { registerSecret } from '../../src/observability/secret-registry.js';

const says = (body: string, type: string | undefined = 'application/json') =>
  serviceSays({ headers: type === '' ? {} : { 'content-type': type }, bytes: Buffer.from(body) });

test.each([
  ['{"message":"Not licensed."}', 'Not licensed.'],
  ['{"Message":"An error has occurred."}', 'An error has occurred.'],
  ['{"type":"about:blank","title":"Forbidden","detail":"The module is off.","status":403}', 'The module is off.'],
  ['{"title":"Forbidden","status":403}', 'Forbidden'],
  ['{"error":"access_denied","error_description":"no role"}', 'no role'],
  ['{"error":"access_denied"}', 'access_denied'],
  ['{"error":{"code":"x","message":"Deep."}}', 'Deep.'],
  ['{"error":{"code":"x","message":{"lang":"en","value":"OData 3."}}}', 'OData 3.'],
  ['{"errors":[{"code":7,"message":"First."},{"message":"Second."}]}', 'First.'],
  ['{"errors":["Plain."]}', 'Plain.'],
  ['[{"errorCode":"X","message":"In an array."}]', 'In an array.'],
  ['{"fault":{"faultstring":"Quota.","detail":{"errorcode":"q"}}}', 'Quota.'],
  ['{"Fault":{"Error":[{"Message":"As QuickBooks.","Detail":"d"}]}}', 'As QuickBooks.'],
  ['{"message":"","detail":"The next filled one."}', 'The next filled one.'],
  ['"A string."', 'A string.'],
  ['{"success":false,"code":403}', undefined],
  ['{"message":true}', undefined],
  ['', undefined],
  ['{"mess', undefined],
])('of %s it takes %s', (body, sentence) => {
  expect(says(body)).toBe(sentence);
});

test('a short plain text is a sentence; HTML, a long text and another type are none', () => {
  expect(says('Not for you.\r\n', 'text/plain; charset=utf-8')).toBe('Not for you.');
  expect(says('{"message":"JSON under another name"}', 'text/plain')).toBe('JSON under another name');
  expect(says('Not for you.', '')).toBe('Not for you.');
  expect(says('<html><body>403</body></html>', 'text/plain')).toBeUndefined();
  expect(says('<html><body>403</body></html>', 'text/html')).toBeUndefined();
  expect(says('x'.repeat(2_001), 'text/plain')).toBeUndefined();
  expect(says(`{"message":"${'x'.repeat(70_000)}"}`)).toBeUndefined();
  expect(says('{"message":"x"}', 'application/problem+json; charset=utf-8')).toBe('x');
});

test('the sentence is one line of at most 300 characters, without what cannot be seen', () => {
  expect(says(JSON.stringify({ message: 'a\u0000b\u001b[31m\r\nc\u202Ed\u2066e\u200Bf\u2028g\uD800' }))).toBe(
    'a b [31m cdef g\uFFFD',
  );
  const cut = says(JSON.stringify({ message: `${'x'.repeat(298)}😀😀` }))!;
  expect(cut).toBe(`${'x'.repeat(298)}…`);
  expect(says(JSON.stringify({ message: 'y'.repeat(300) }))).toHaveLength(300);
});

test('a token is gone before the cut, however the answer divides it', () => {
  registerSecret('s3cret-token-of-a-company');
  expect(says('{"message":"token s3cret-token-of-a-company is not valid"}')).toBe('token [redacted] is not valid');
  expect(says('{"message":"it was s3cret\u200B-token-of-a-company"}')).toBe('it was [redacted]');
  const late = says(JSON.stringify({ message: `${'x'.repeat(290)} s3cret-token-of-a-company` }))!;
  expect(late).not.toContain('s3cret');
  expect(says('{"message":"Bearer abcdefghijklmnop refused"}')).toBe('Bearer [redacted] refused');
});
