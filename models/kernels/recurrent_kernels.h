// RecurrentKernels: the loops of an LSTM besides its matrix products, as plain function pointers.
//
// A part of the kernel table, under its rules (models/kernels/kernel_table.h): every output is one chain of operations
// in a fixed order, so every vector width gives the same bits.
//
// Units come in groups of 16. A row of `gates` has for each group the 16 values of each of the four gates, in PyTorch's
// order: input i, forget f, candidate g, output o. A row of a state has one value for each unit.
#pragma once

namespace rumor::models {

struct RecurrentKernels {
  // One time step (Hochreiter, Schmidhuber 1997, with the forget gate of Gers, Schmidhuber, Cummins 2000):
  //   i, f, o = logistic(their sums), g = tanh(its sum), cell = f * before + i * g, out = o * tanh(cell).
  // gates: [rows][groups][4][16]; in: the sums, out: the values of the gates. before, cell, out: [rows][groups][16].
  // Rows are gates_row and state_row floats apart. Arguments do not overlap.
  void (*lstm_forward)(long rows, long groups, float* gates, long gates_row, const float* before, float* cell,
                       float* out, long state_row);

  // The backward pass of lstm_forward. In: the gates that it left, its before and cell; change, d loss / d out;
  // cell_change, d loss / d cell by way of later time steps. Out: gates, d loss / d their sums; cell_change, d loss / d
  // before.
  void (*lstm_backward)(long rows, long groups, float* gates, long gates_row, const float* before,
                        const float* cell, const float* change, float* cell_change, long state_row);
};

}  // namespace rumor::models
