// Asio's non-template parts, compiled once.
#include <boost/asio/impl/src.hpp>
