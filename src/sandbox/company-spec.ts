import { parseCompanyId } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { Random } from './random.js';

const share =
  (each: number, most = Infinity) =>
  (employees: number) =>
    Math.min(most, Math.ceil(employees * each));

/** The lists that the sandbox serves for every company, each with its size for a number of employees. */
const SIZES = {
  employees: share(1),
  departments: (employees: number) => Math.max(1, Math.ceil(employees / 16)),
  absences: share(1.5),
  documents: share(0.6),
  positions: (employees: number) => Math.max(1, Math.min(240, Math.ceil(employees / 4))),
  contracts: share(1, 310),
  shifts: share(2, 270),
  notes: share(1 / 3, 130),
  payslips: share(1.2, 230),
  timesheets: share(1 / 2, 170),
};
export type Resource = keyof typeof SIZES;
export const RESOURCES = Object.keys(SIZES) as Resource[];

/** A company to serve, with the initial sizes of its lists. Missing sizes follow from the number of employees. */
export interface CompanySpec extends Readonly<Partial<Record<Resource, number>>> {
  readonly name: string;
  readonly employees: number;
  /** GUID; default: made from the name. */
  readonly companyId?: string;
}

export type PlannedCompany = Required<CompanySpec>;

export const EXAMPLE_COMPANIES: readonly CompanySpec[] = [
  { companyId: '5b0e7a52-19c4-4d0e-9b7e-0c4f6a1d2e01', name: 'Nystiftet Holding AS', employees: 0 },
  { companyId: '1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02', name: 'Ekdal Regnskap', employees: 1 },
  { companyId: 'c86d41f7-0e35-4b98-a2c6-91e8d7b35f03', name: 'Brattskjær Båtbyggeri AS', employees: 37 },
  { companyId: '9a27e5b0-d3f8-4169-b54a-2c60f98e7d04', name: 'Havgløtt Sjømat AS', employees: 1_234 },
  { companyId: 'e4719c3d-82ab-4f06-97d1-b3a5c08f6e05', name: 'Nordlia Helse og Omsorg', employees: 20_000 },
];

export function planCompany(spec: CompanySpec): PlannedCompany {
  const companyId = parseCompanyId(spec.companyId ?? new Random(`company ${spec.name}`).guid());
  if (companyId === undefined) {
    throw new MusterError(
      'invalid_configuration',
      `Sandbox company "${spec.name}": companyId must be a GUID, not "${spec.companyId}".`,
    );
  }
  const sizes = Object.fromEntries(RESOURCES.map((resource) => [resource, SIZES[resource](spec.employees)]));
  return { ...(sizes as Record<Resource, number>), ...spec, companyId };
}
