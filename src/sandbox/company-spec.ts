import { parseCompanyId } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import { Random } from './random.js';

/** The lists that the sandbox serves for every company. */
export const RESOURCES = [
  'employees',
  'departments',
  'absences',
  'documents',
  'positions',
  'contracts',
  'shifts',
  'notes',
  'payslips',
  'timesheets',
] as const;
export type Resource = (typeof RESOURCES)[number];

/** A company to serve, with the numbers of its records at the start. What is left out is made to fit the number of employees. */
export interface CompanySpec extends Readonly<Partial<Record<Resource, number>>> {
  readonly name: string;
  readonly employees: number;
  /** GUID; default: made from the name. */
  readonly companyId?: string;
}

/** A company with everything filled in. */
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
  const { employees } = spec;
  const share = (each: number, most = Infinity) => Math.min(most, Math.ceil(employees * each));
  return {
    departments: Math.max(1, share(1 / 16)),
    absences: share(1.5),
    documents: share(0.6),
    positions: Math.max(1, share(1 / 4, 240)),
    contracts: share(1, 310),
    shifts: share(2, 270),
    notes: share(1 / 3, 130),
    payslips: share(1.2, 230),
    timesheets: share(1 / 2, 170),
    ...spec,
    companyId,
  };
}
