import cds, { type ReadRequest } from '@sap/cds';
import express from 'express';
import { type ForeignService, listen, serveCompany } from './foreign-service.js';

/**
 * An OData 4 service of the SAP Cloud Application Programming Model. It reads the requests and writes the answers; the handler only
 * cuts what was asked for from an array. `count` records are served at two addresses:
 *
 *     GET /odata/v4/roster/Shifts?$count=true
 *     GET /odata/v4/roster/Companies(<any GUID>)/shifts?$count=true
 *     { "@odata.context": "../$metadata#Shifts", "@odata.count": 1234,
 *       "@odata.nextLink": "Companies(…)/shifts?%24count=true&%24skiptoken=100", "value": [ … ] }
 *
 * The service decides on the size of a page: `pageSize`. $top is the most records that the client wants in ALL pages together, so a
 * list that is asked for with a small $top ends early, and its @odata.count says so. The link is relative to the folder of
 * @odata.context, which at the second address is not the folder of the request.
 */
export async function startODataServer({ count = 1234, pageSize = 100 } = {}): Promise<ForeignService> {
  const company_id = '1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02';
  const records = Array.from({ length: count }, (_, n) => ({ id: n + 1, title: `Vakt nr. ${n + 1}`, hours: 7.5, company_id }));
  const model = cds.linked(
    cds.compile(`
      @path: '/odata/v4/roster' @cds.query.limit: { default: ${pageSize}, max: ${pageSize} } service Roster {
        @readonly entity Companies { key id: UUID; shifts: Association to many Shifts on shifts.company = $self; }
        @readonly entity Shifts { key id: Integer; title: String; hours: Decimal; company: Association to Companies; }
      }`),
  );
  cds.model = model;
  // Any bearer token is let in.
  cds.env.requires.auth = { kind: 'dummy', impl: (cds.env.requires.kinds as Kinds)['dummy-auth'].impl };
  for (const name of ['cds', 'odata']) cds.log(name).info = () => {};

  const app = express();
  serveCompany(app);
  app.use(...cds.middlewares.before);
  await cds
    .serve('Roster')
    .from(model)
    .in(app)
    .with((service) => service.on('READ', 'Shifts', (request) => cut(records, request)));
  return listen(app, records);
}

interface Kinds {
  readonly 'dummy-auth': { readonly impl: string };
}

function cut(records: readonly object[], { query }: ReadRequest): object[] & { $count?: number } {
  const { limit, count } = query.SELECT;
  const offset = limit?.offset?.val ?? 0;
  const page: object[] & { $count?: number } = records.slice(offset, offset + (limit?.rows?.val ?? records.length));
  if (count) page.$count = records.length;
  return page;
}
