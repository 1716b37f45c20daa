/** The lists that are mirrored without a catalogue file, written as it would be. A file of the operator replaces them all. */
export const BUILT_IN_CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 500 },
    id: ['uid', 'id'],
  },
  departments: {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/departments/list',
    pager: { style: 'skip-take', in: 'body', size: 500 },
    id: ['uid', 'id'],
  },
};
