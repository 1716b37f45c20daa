import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { publicKey, readCertificate } from '../../certificates/certificate.js';
import { Statement } from '../../certificates/statement.js';
import type { Environment } from '../../core/company.js';
import { boundsWithin } from '../../core/days.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { type CertificateRow, findCertificate, listCertificates, listSigningKeys } from '../../db/tables/certificates.js';
import { HOLD_CAUSES, HOLD_STATUSES, holdsOfWalks } from '../../db/tables/holds.js';
import type { Schedule } from '../../runs/schedule.js';
import { CompanyName, companyFilterOf, namedPage, withCompanyNames } from '../plumbing/company-names.js';
import { CompanySearchFilters, Count, Day, listQuery, Moment, pageOf, presentPage, ResourceName } from '../plumbing/models.js';
import { answers, operationsOf } from '../plumbing/operations.js';
import { watchMethods } from '../plumbing/request-checks.js';

const CertificateQuery = listQuery({
  ...CompanySearchFilters,
  resource: ResourceName.exactOptional(),
  day: Day.exactOptional().describe('Certificates with a `verified_at` on this day, in the time zone of the schedule.'),
  since: Moment.exactOptional().describe('Certificates with this `verified_at` or a later one.'),
  until: Moment.exactOptional().describe('Certificates with an earlier `verified_at`.'),
});

/** The id of a barrier: a bigint. */
const CertificateParams = z.object({
  id: z
    .string()
    .regex(/^\d{1,18}$/, 'must be the id of a certificate: a number')
    .transform(BigInt),
});

const Certificate = Statement.extend({
  id: z.string(),
  company_name: CompanyName,
  kid: z.string().describe('The key of /.well-known/jwks.json that signed it.'),
  hold: z
    .object({ id: z.string(), cause: z.enum(HOLD_CAUSES), count: Count, status: z.enum(HOLD_STATUSES) })
    .optional()
    .describe('The hold of the rows that the walk would have deleted, as it is now. It is no part of the signed statement.'),
  jws: z
    .string()
    .describe(
      'The certificate itself: a compact JWS (RFC 7515). Its payload is the other members, but for `company_name` and `hold`.',
    ),
}).meta({ id: 'Certificate', description: 'A signed statement about one verified walk: docs/certificates.md.' });
export type CertificateModel = z.output<typeof Certificate>;

const KeySet = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal('OKP'),
        crv: z.literal('Ed25519'),
        x: z.string(),
        kid: z.string(),
        alg: z.literal('EdDSA'),
        use: z.literal('sig'),
      }),
    ),
  })
  .meta({ id: 'KeySet', description: 'A JWK set (RFC 7517, RFC 8037).' });

const { viewer } = operationsOf('changes');

interface CertificateRoutesDependencies {
  readonly db: Database;
  readonly schedule: Pick<Schedule, 'timezone'>;
}

export function certificateRoutes({ db, schedule }: CertificateRoutesDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/certificates',
      viewer('listCertificates', 'List the certificates of verified walks, newest first', {
        description: 'Each verified walk has one, a few seconds after it ended.',
        querystring: CertificateQuery,
        response: { 200: pageOf(Certificate) },
      }),
      async ({ query: { day, ...query } }) => {
        const filter = { ...(await companyFilterOf(db, query)), ...boundsWithin({ day, ...query }, schedule.timezone) };
        const page = presentPage(await listCertificates(db, filter), presentCertificate);
        return namedPage(db, { ...page, data: await withHolds(db, page.data) });
      },
    );

    api.get(
      '/certificates/:id',
      viewer('showCertificate', 'Show a certificate', {
        params: CertificateParams,
        response: { 200: Certificate },
        problems: ['certificate_not_found'],
      }),
      async ({ params: { id } }) => {
        const row = await findCertificate(db, id);
        if (!row) throw new MusterError('certificate_not_found', `There is no certificate ${id}.`);
        return (await withCompanyNames(db, await withHolds(db, [presentCertificate(row)])))[0]!;
      },
    );
  };
}

/** This route takes no token: a person who checks a certificate has none, and a public key is no secret. */
export function signingKeyRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (app) => {
    const refuseOtherMethods = watchMethods(app);
    app.get(
      '/.well-known/jwks.json',
      {
        schema: {
          tags: ['changes'],
          security: [],
          operationId: 'listSigningKeys',
          summary: 'Show the public keys of every certificate',
          description: 'In the order in which they were made. No key is ever left out.',
          response: answers({ 200: KeySet }),
        },
      },
      async () => ({ keys: (await listSigningKeys(db)).map(publicKey) }),
    );
    refuseOtherMethods();
  };
}

async function withHolds(db: Database, certificates: readonly CertificateModel[]): Promise<CertificateModel[]> {
  const walks = certificates.map(({ environment, company_id, resource, walk_id }) => ({
    environment: environment as Environment,
    companyId: company_id,
    resource,
    walkId: walk_id,
  }));
  const holds = await holdsOfWalks(db, walks);
  return certificates.map((certificate) => {
    const hold = holds.get(certificate.walk_id);
    return hold ? { ...certificate, hold } : certificate;
  });
}

function presentCertificate({ id, jws }: CertificateRow): CertificateModel {
  const { kid, statement } = readCertificate(jws);
  return { id: String(id), ...statement, kid, jws };
}
