import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/http/service-error.js';
import { refusedPage } from '../../src/pagers/refusal.js';

const refusal = (said: string | undefined, status = 400, isInOwnWords = true) =>
  refusedPage(
    new ServiceError('service_refused', 'x', { sent: true, status, isInOwnWords, texts: said === undefined ? [] : [said] }),
  );

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
    'must be between 1 and 2.',
    'must be <= 2',
    'MAX_PAGE_EXCEEDED',
    'LIMIT_EXCEEDED',
    'WINDOW',
    'Pagination is available for the first 20 results',
    'Use the export endpoint to retrieve more records',
    'page_not_in_plan',
    'The 1000 most recent rows can be read',
    'Result set is capped at 10000',
    'ensure this value is less than or equal to 2',
    'Unknown parameter: page',
    'unrecognized query parameter skip',
  ])('has another reason than the end: %s', (sentence) => {
    for (const status of [400, 404, 416]) expect(refusal(sentence, status)).toEqual({ status, reason: 'limit' });
  });

  test.each([
    'Invalid page.',
    'Not Found',
    'NOT_FOUND',
    'PageNotFoundException',
    'no such page',
    'There is no page 4.',
    'Page 4 exceeds the total number of pages (3).',
    'The offset exceeds the number of records',
    'Page number is greater than the last page',
    'Cannot go beyond the last page',
    'page is past the end of the list',
    'Page out of range',
    'offset out of bounds',
    'The requested range is not satisfiable',
    'No more records',
    'That page contains no results',
    'The page does not exist',
    'Seite nicht gefunden',
  ])('says that there is no such page: %s', (sentence) => {
    for (const status of [400, 404, 416]) expect(refusal(sentence, status)).toEqual({ status, reason: 'end' });
  });

  test.each([
    undefined,
    'Bad Request',
    'error',
    'BadRequestException',
    'E1042',
    'https://api.example.com/errors/4',
    'An error has occurred.',
  ])('says nothing but that there is no page: %s', (sentence) => {
    for (const status of [400, 404, 416]) expect(refusal(sentence, status)).toEqual({ status, reason: 'end' });
  });

  test.each([
    'Es können nur die ersten 20 Datensätze abgerufen werden',
    'Seules les 20 lignes du début sont lisibles',
    '最多只能查询前二十条',
    'Pagination is available for the opening 20 results',
    'Invalid record 17',
  ])('is in words that are not known: %s', (sentence) => {
    for (const status of [400, 404, 416]) expect(refusal(sentence, status)).toEqual({ status, reason: 'unclear' });
  });

  test('is one of an API that speaks for itself, with a status that such a page has', () => {
    expect(refusal('no such page', 404, false)).toBeUndefined();
    for (const status of [401, 403, 405, 410, 422]) expect(refusal('no such page', status)).toBeUndefined();
  });
});
