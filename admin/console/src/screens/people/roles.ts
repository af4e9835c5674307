// Roles that people can have in a workspace, the least first.
export const SEAT_ROLES = ["member", "manager", "admin"];
