import jsonServer from 'json-server';
import { type ForeignService, listen, serveCompany } from './foreign-service.js';

/**
 * json-server with `count` records at `/api/companies/<any company>/notes`:
 *
 *     GET …/notes?_page=2&_limit=100     or  ?_start=100&_limit=100
 *     X-Total-Count: 500
 *     Link: <http://127.0.0.1:…?_page=1&_limit=100>; rel="first", <…>; rel="prev", <…>; rel="next", <…>; rel="last"
 *     [ { "id": 101, … }, … ]
 *
 * Without _limit a page has 10 records. Behind the end the array is empty and the Link header is an empty text; with _start there
 * is no Link header. The answers are indented, compressed by gzip for those who accept it, and have weak ETags.
 */
export function startJsonServer(count = 500): Promise<ForeignService> {
  const notes = Array.from({ length: count }, (_, n) => ({ id: n + 1, text: `Note ${n + 1}: “søknad”`, pinned: n % 7 === 0 }));
  const app = jsonServer.create();
  serveCompany(app);
  app.use(...jsonServer.defaults({ logger: false, readOnly: true }));
  app.use('/api/companies/:company_id', jsonServer.router({ notes }));
  return listen(app, notes);
}
