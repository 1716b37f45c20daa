import { describe, expect, test } from 'vitest';
import { refusedPage } from '../../src/pagers/refusal.js';
import { ServiceError } from '../../src/http/service-error.js';

const refusal = (serviceSays: string | undefined, status = 400, isInOwnWords = true) =>
  refusedPage(new ServiceError('service_refused', 'x', { sent: true, status, isInOwnWords, serviceSays }));

describe('the refusal of a page', () => {
  test.each([
    'Result window is too large, from + size must be less than or equal to: [10000]',
    'The offset limit is 10000.',
    'offset must be less than 10000',
    'skip must be <= 10000',
    'Offset exceeds the maximum',
    'The page exceeds the total allowed',
    'You cannot page beyond 10000 records',
    'You can not ask for more than 10000 records',
    'Only the first 10000 records can be read',
    'PAGE_TOO_DEEP',
    'offset_limit_exceeded',
    'max_offset is 10000',
    'At most 10000 records can be returned',
    'No more than 100 pages',
    'Your plan does not allow this; upgrade it',
    'Deep paging is not supported',
    'skip must be a multiple of take',
    'Unknown parameter: page',
    'unrecognized query parameter skip',
  ])('has another reason than the end: %s', (sentence) => {
    for (const status of [400, 404, 416]) expect(refusal(sentence, status)).toEqual({ status, hasOtherReason: true });
  });

  test.each([
    undefined,
    'Invalid page.',
    'Not Found',
    'Bad Request',
    'no such page',
    'There is no page 4.',
    'Page 4 exceeds the total number of pages (3).',
    'The offset exceeds the number of records',
    'Page number is greater than the last page',
    'Cannot go beyond the last page',
    'page is past the end of the list',
    'Page out of range',
    'The requested range is not satisfiable',
    'No more records',
  ])('has no other reason than the end: %s', (sentence) => {
    for (const status of [400, 404, 416]) expect(refusal(sentence, status)).toEqual({ status, hasOtherReason: false });
  });

  test('is one of an API that speaks for itself, with a status that such a page has', () => {
    expect(refusal('no such page', 404, false)).toBeUndefined();
    for (const status of [401, 403, 405, 410, 422]) expect(refusal('no such page', status)).toBeUndefined();
  });
});
